#include "server/executor.h"

#include <utility>

namespace vedette::server {

Executor::Executor(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Executor::~Executor() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Executor::post(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  arrived_.notify_one();
}

void Executor::work() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void SerialQueue::open() {
  {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    if (running_ || tasks_.empty()) return;
    running_ = true;
  }
  executor_.post([self = shared_from_this()] { self->drain(); });
}

void SerialQueue::post(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (running_ || !open_) return;
    running_ = true;
  }
  executor_.post([self = shared_from_this()] { self->drain(); });
}

void SerialQueue::drain() {
  while (true) {
    std::function<void()> task;
    {
      const std::scoped_lock lock(mutex_);
      if (tasks_.empty()) {
        running_ = false;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace vedette::server
