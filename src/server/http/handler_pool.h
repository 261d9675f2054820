// The threads that run handlers, so that a slow one never holds up the connections.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vedette::server::transport {

// Thread-safe. Each connection has at most one task here, which bounds the queue.
class HandlerPool {
 public:
  explicit HandlerPool(int threads);
  ~HandlerPool();  // stop()
  void post(std::function<void()> task);
  // Runs what was posted, then joins. Not from one of its own threads.
  void stop();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vedette::server::transport
