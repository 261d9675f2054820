// Where models lie on this machine, and what a model argument means.
//
// Nothing here downloads (hub/download.h does): a model that is nowhere is an error that lists where it was looked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vedette::hub {

// What `run` uses when no model is named; tools/fetch_models.py puts it into the store.
inline constexpr std::string_view kDefaultModel = "vedette/SmolLM2-135M-Instruct";

struct StoreSettings {
  std::string models_dir;                     // "": <cache_dir>/models
  std::string cache_dir;                      // "": ~/.cache/vedette
  std::string default_org = "mlx-community";  // owner of a bare name
  std::optional<std::string> revision;        // as asked for; absent: main
};

// Folder that holds owner/name folders.
std::string store_root(const StoreSettings& settings);

struct ResolvedModel {
  std::string path;    // a folder or a .gguf file, for weights::open_checkpoint
  std::string name;    // as shown to people: owner/name, or the path
  std::string source;  // "path", "./models", "store", "Hugging Face cache"
};

// In this order: an existing path; owner/name in ./models, in the store, in the Hugging Face cache. A bare name
// takes the default owner. Errors: kInvalidRequest (no name at all, a revision of a local path), kNotFound (with the
// places looked at and how to fetch it), kUnsupported (a file that is no checkpoint).
Result<ResolvedModel> resolve_model(const std::string& argument, const StoreSettings& settings);

// The owner/name that an argument stands for where the model is nowhere on this machine and could be fetched; "" if it
// is here, or is no such name.
std::string missing_model(const std::string& argument, const StoreSettings& settings);
// "owner/name" of two plain names.
bool is_repo_id(const std::string& text);

struct StoreEntry {
  std::string repo_id;  // owner/name
  std::string path;     // absolute
  int64_t size_bytes = 0;
  std::optional<int64_t> modified;  // seconds since the epoch, of the newest file
};

// Every owner/name folder of the store that holds a file, by name. A store that does not exist is empty.
std::vector<StoreEntry> list_store(const std::string& root);
// The main snapshot of every model in the Hugging Face cache, by name.
std::vector<StoreEntry> list_hugging_face_cache();

// A folder that models are looked for in.
struct ModelFolder {
  std::string kind;  // as ResolvedModel::source
  std::string path;
  bool exists = false;
  std::vector<StoreEntry> models;
};
// ./models, the store and the Hugging Face cache, in the order of resolve_model.
std::vector<ModelFolder> model_folders(const StoreSettings& settings);

}  // namespace vedette::hub
