// Answers under way: their keep-alives, their watchdog, and how they end when the server does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace vedette::server {

// Something that wants a call from time to time. Thread-safe.
class LiveJob {
 public:
  virtual ~LiveJob() = default;
  virtual void tick(int64_t now_ms) = 0;
  virtual void abort(const Error& error) = 0;
};

// One thread that ticks every live job. Thread-safe.
class LiveJobs {
 public:
  LiveJobs();
  ~LiveJobs();
  void add(std::weak_ptr<LiveJob> job);
  int64_t count() const;
  void abort_all(const Error& error);
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
