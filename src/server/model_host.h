// The model a server has loaded, if any: load, swap, unload while requests run.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "server/served_model.h"

namespace vedette::server {

// Thread-safe. Jobs keep the model they started on by reference; a swap lets go of the old one before the new
// one's weights are loaded, and keeps it where the new one cannot be opened.
class ModelHost {
 public:
  enum class State : uint8_t { kNone, kLoading, kReady, kFailed, kSleeping };
  struct View {
    State state = State::kNone;
    std::string name;  // of the model that is loaded or being loaded
    int64_t bytes_done = 0, bytes_total = 0;
    std::string error;  // kFailed: why
  };

  ~ModelHost();

  // The loaded model, or kUnavailable: one is loading (try again), or none is loaded (POST /admin/load).
  Result<std::shared_ptr<ServedModel>> current() const;
  // The same for a request that needs it: a sleeping model is loaded again first.
  Result<std::shared_ptr<ServedModel>> wake();
  // Replaces the model; returns when it is ready. Only one load at a time: kUnavailable otherwise. What can be known
  // before the old model goes (a broken checkpoint, a context that is too long) leaves it serving.
  Status load(ServedModelOptions options);
  // Lets go of the model, be it asleep; true if there was one. Waits up to `wait_ms` for its jobs to end.
  bool unload(int wait_ms);
  // Unloads until wake(); does nothing where jobs hold the model.
  void sleep();
  View view() const;

 private:
  // Nobody else loads from here on; the old model is gone.
  Status begin_load(const ServedModelOptions& options);
  Status fail_load(const Error& error);
  // With what was opened before, if it was.
  Status load_over(ServedModelOptions options, std::optional<OpenedModel> opened);

  mutable std::mutex mutex_;
  std::shared_ptr<ServedModel> model_;
  View view_;
  ServedModelOptions options_;  // of the model loaded last
  std::mutex waking_;           // one wake() at a time; taken before mutex_
};

}  // namespace vedette::server
