// Fetching a model from the Hugging Face hub into the store: resumed, checked, and there all at once or not at all.
//
// Files are written to <store>/.downloads/<owner>--<name>/ as *.part, checked by size and sum, and the folder is moved
// into place when it is whole. A lock keeps two processes from fetching the same model.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/model_store.h"

namespace vedette::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  std::string token;          // "": none
  std::string extra_ca_file;  // "": the system's certificates alone
};

// How a download that someone started is seen and called off by others.
struct DownloadWatch {
  std::function<void(const std::string& repo_id, int64_t done, int64_t total)> progress;  // from the start on
  std::stop_token stop;
};

struct DownloadRequest {
  std::string repo_id;  // owner/name
  std::string revision = "main";
  StoreSettings store;
  HubSettings hub;
  std::string local_dir;  // "": the store
  std::vector<std::string> include, exclude;
  bool force = false;  // fetch again what is there and whole
  // Bytes of all files; on the calling thread.
  std::function<void(int64_t done, int64_t total)> progress;
  // One line each: what is fetched, what was chosen, who else holds the lock.
  std::function<void(const std::string& line)> notice;
  // Heeded within a second at any stage but the check of a whole file's sum. What has come is kept for the next
  // attempt.
  std::stop_token stop;
};

struct DownloadReport {
  std::string path;  // of the model's folder
  std::string commit;
  int64_t files = 0, fetched_files = 0;
  int64_t bytes = 0, fetched_bytes = 0;
  bool from_cache = false;  // the Hugging Face cache has it; nothing was fetched
};

// Errors: kNotFound (no such model, revision or file), kInvalidRequest (a name that is none; no or no fit token, with
// field "--token"), kUnavailable (unreachable, server errors after retries, no room on the disk), kCorruptFile (sums,
// sizes, names), kCancelled.
Result<DownloadReport> download_model(const DownloadRequest& request);

// Deletes what an unfinished download of the model has left in the store.
Status discard_download(const std::string& repo_id, const StoreSettings& store);

}  // namespace vedette::hub
