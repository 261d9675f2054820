#include "server/http/handler_pool.h"

#include <algorithm>
#include <utility>

namespace vedette::server::transport {

HandlerPool::HandlerPool(int threads) : most_large_(static_cast<size_t>(std::max(1, threads - 1))) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { work(); });
}

HandlerPool::~HandlerPool() {
  stop();
}

void HandlerPool::post(std::function<void()> task, bool large) {
  {
    const std::lock_guard lock(mutex_);
    (large ? large_ : small_).push_back({std::move(task), posted_++});
  }
  changed_.notify_one();
}

void HandlerPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

std::deque<HandlerPool::Task>* HandlerPool::next() {
  const bool large = !large_.empty() && large_running_ < most_large_;
  if (large && (small_.empty() || large_.front().number < small_.front().number)) return &large_;
  return small_.empty() ? nullptr : &small_;
}

void HandlerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || next() != nullptr; });
    std::deque<Task>* const tasks = next();
    if (tasks == nullptr) return;  // what is left goes to threads that run large ones
    std::function<void()> task = std::move(tasks->front().run);
    tasks->pop_front();
    const bool large = tasks == &large_;
    large_running_ += large ? 1 : 0;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    large_running_ -= large ? 1 : 0;
    if (large && next() == &large_) changed_.notify_one();
  }
}

}  // namespace vedette::server::transport
