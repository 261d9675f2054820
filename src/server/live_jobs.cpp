#include "server/live_jobs.h"

#include <algorithm>
#include <chrono>

namespace vedette::server {
namespace {
constexpr std::chrono::milliseconds kTick{250};
}

LiveJobs::LiveJobs() : thread_([this] { run(); }) {}

LiveJobs::~LiveJobs() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void LiveJobs::add(std::weak_ptr<LiveJob> job) {
  const std::scoped_lock lock(mutex_);
  jobs_.push_back(std::move(job));
}

std::vector<std::shared_ptr<LiveJob>> LiveJobs::alive() const {
  std::vector<std::shared_ptr<LiveJob>> out;
  const std::scoped_lock lock(mutex_);
  std::erase_if(jobs_, [&](const std::weak_ptr<LiveJob>& job) {
    auto held = job.lock();
    if (held) out.push_back(std::move(held));
    return job.expired();
  });
  return out;
}

std::optional<bool> LiveJobs::end_reasoning(std::string_view id, std::string_view scope) const {
  for (const auto& job : alive())
    if (const auto ended = job->end_reasoning(id, scope)) return ended;
  return std::nullopt;
}

void LiveJobs::abort_all(const Error& error) {
  for (const auto& job : alive()) job->abort(error);
}

bool LiveJobs::cancel(const std::string& scope, const std::string& id, const LiveJob::Told& told) {
  for (const auto& job : alive())
    if (job->cancel(scope, id, told)) return true;
  return false;
}

int64_t LiveJobs::now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void LiveJobs::run() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kTick, [this] { return stopping_; })) {
    lock.unlock();
    for (const auto& job : alive()) job->tick(now_ms());
    lock.lock();
  }
}

}  // namespace vedette::server
