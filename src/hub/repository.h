// What the Hugging Face hub tells of a model repository, and which of its files a model needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vedette::hub {

struct RepositoryFile {
  std::string path;     // relative, checked: no way out of its folder
  int64_t size = -1;    // -1: not told
  std::string sha256;   // of files in LFS; else ""
  std::string blob_id;  // Git's SHA-1 of other files; else ""
};

struct Repository {
  std::string id;      // owner/name
  std::string commit;  // hexadecimal; "" if not told
  std::vector<RepositoryFile> files;
};

// A relative path whose every part is a plain name: no way out, no control characters, no backslash.
bool is_safe_path(std::string_view path);

// The answer of GET /api/models/OWNER/NAME/revision/REV?blobs=true. Errors (kCorruptFile): no such JSON, a file name
// that leads out of the folder or holds control characters.
Result<Repository> parse_repository(const std::string& id, std::string_view json);

struct FileChoice {
  std::vector<RepositoryFile> files;
  std::string note;  // one line where there was something to choose; else ""
};

// What the model needs: its weights, configuration, tokenizer and chat templates. Weights are safetensors, else GGUF;
// of several GGUF files one quantization. `include` and `exclude` are shell patterns on paths; with includes they alone
// decide. Errors: kNotFound (no weights, or nothing matches), kInvalidRequest.
Result<FileChoice> choose_files(const Repository& repository, std::span<const std::string> include,
                                std::span<const std::string> exclude);

}  // namespace vedette::hub
