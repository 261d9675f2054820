// The threads that run handlers, so that a slow one never holds up the connections.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vedette::server::transport {

// Thread-safe. Each connection has at most one task here, which bounds the queue. Tasks begin in the order in which
// they came, but large ones leave a thread to the others (where there are two), as reading a large body may take long.
class HandlerPool {
 public:
  explicit HandlerPool(int threads);
  ~HandlerPool();  // stop()
  void post(std::function<void()> task, bool large = false);
  // Runs what was posted, then joins. Not from one of its own threads.
  void stop();

 private:
  struct Task {
    std::function<void()> run;
    uint64_t number;
  };

  void work();
  // Of small and large ones the next that may begin, or null. Under the lock.
  std::deque<Task>* next();

  const size_t most_large_;  // at once
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> small_, large_;
  uint64_t posted_ = 0;
  size_t large_running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vedette::server::transport
