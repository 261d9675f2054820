// Threads that run tasks, and queues of tasks that run one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace vedette::server {

// A fixed pool of threads. Tasks must not throw and not block for long. Any thread may post.
class Executor {
 public:
  explicit Executor(int threads);
  ~Executor();  // runs what is queued, then joins
  void post(std::function<void()> task);

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Tasks of one queue never overlap and keep their order; nothing runs until open() is called. Held by shared_ptr.
class SerialQueue : public std::enable_shared_from_this<SerialQueue> {
 public:
  explicit SerialQueue(Executor& executor) : executor_(executor) {}
  void open();
  void post(std::function<void()> task);

 private:
  void drain();
  Executor& executor_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
  bool open_ = false;
  bool running_ = false;
};

}  // namespace vedette::server
