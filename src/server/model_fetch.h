// The model that POST /admin/load brings here, possibly from the hub: how far it is, and how it is called off.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "hub/download.h"
#include "server/served_model.h"

namespace vedette::server {

// Name of a model (as in POST /admin/load) to all that loading it takes, fetched first where it is nowhere.
using Resolver = std::function<Result<ServedModelOptions>(const std::string& name, const hub::DownloadWatch& watch)>;

// Thread-safe. One at a time; models that are loaded go on serving meanwhile.
class ModelFetch {
 public:
  struct View {
    std::string name;  // as it was asked for
    std::string repo;  // "" as long as nothing is fetched
    int64_t bytes_done = 0, bytes_total = 0;
  };

  // Errors of the resolver (kCancelled after cancel()), and kUnavailable where another is under way.
  Result<ServedModelOptions> run(const std::string& name, const Resolver& resolve, const hub::StoreSettings& store);
  // Returns when the one under way has ended; false where there is none. `cleanup` deletes what had come, which would
  // otherwise spare the next attempt its bytes.
  bool cancel(bool cleanup);
  std::optional<View> view() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<View> view_;
  std::stop_source stop_;
  bool cleanup_ = false;
  int64_t runs_ = 0;
};

// {repo, bytes_done, bytes_total} of what is being fetched, else null.
Json download_json(const std::optional<ModelFetch::View>& fetch);

}  // namespace vedette::server
