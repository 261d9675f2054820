// Answers under way: their keep-alives, their watchdog, and how they end when the server does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace vedette::server {

// Something that wants a call from time to time. Thread-safe.
class LiveJob {
 public:
  virtual ~LiveJob() = default;
  virtual void tick(int64_t now_ms) = 0;
  virtual void abort(const Error& error) = 0;

  using Told = std::function<void(const Result<Json>& body)>;
  // False: it has not this name, or is over. Else it ends with what it has said, and `told` hears its answer.
  virtual bool cancel(const std::string& scope, const std::string& id, const Told& told) {
    (void)scope;
    (void)id;
    (void)told;
    return false;
  }
  // Ends the reasoning of the answer that clients of `scope` know by this id. Absent: it is another one; false: it was
  // not sent as one whose reasoning can be ended.
  virtual std::optional<bool> end_reasoning(std::string_view id, std::string_view scope) {
    (void)id;
    (void)scope;
    return std::nullopt;
  }
};

// One thread that ticks every live job. Thread-safe.
class LiveJobs {
 public:
  LiveJobs();
  ~LiveJobs();
  void add(std::weak_ptr<LiveJob> job);
  std::optional<bool> end_reasoning(std::string_view id, std::string_view scope) const;
  void abort_all(const Error& error);
  // The one of that name; false: there is none.
  bool cancel(const std::string& scope, const std::string& id, const LiveJob::Told& told);
  static int64_t now_ms();

 private:
  void run();
  std::vector<std::shared_ptr<LiveJob>> alive() const;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  mutable std::vector<std::weak_ptr<LiveJob>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace vedette::server
