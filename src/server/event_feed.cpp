#include "server/event_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/dialect.h"

namespace vedette::server {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string frame(std::string_view event, const Json& data) {
  std::string out;
  append_sse(out, event, data.dump());
  return out;
}

Json rate(int64_t tokens, double ms) {
  return ms > 0 && tokens > 0 ? Json(static_cast<double>(tokens) * 1000 / ms) : Json();
}

}  // namespace

void EventFeed::prefill(int64_t request, int64_t processed, int64_t total) {
  if (watchers() == 0) return;
  Json event = Json::object();
  event.set("type", "prefill");
  event.set("req", request);
  event.set("mode", "plain");
  event.set("processed", processed);
  event.set("total", total);
  if (processed >= total) event.set("done", true);
  const std::scoped_lock lock(mutex_);
  publish("prefill", event);
}

void EventFeed::finished(int64_t request, std::string_view dialect, const JobStart& start, const JobAnswer& answer,
                         int64_t total_ms) {
  const std::scoped_lock lock(mutex_);
  ++sums_.requests;
  int64_t index = 0;
  for (const ChoiceAnswer& choice : answer.choices) {
    const engine::Timings& times = choice.timings;
    sums_.prompt_tokens += times.prompt_tokens;
    sums_.cached_tokens += times.cached_tokens;
    sums_.completion_tokens += times.generated_tokens;
    sums_.prefill_ms += times.prefill_ms;
    sums_.decode_ms += times.decode_ms;
    Json round = Json::object();
    round.set("type", "round");
    round.set("req", request);
    round.set("id", start.id);
    round.set("i", index++);
    round.set("dialect", dialect);
    round.set("model", start.model);
    round.set("mode", "plain");
    round.set("source", "plain");
    round.set("drafted", 0);
    round.set("accepted", 0);
    round.set("committed", times.generated_tokens);
    round.set("prompt_tokens", times.prompt_tokens);
    round.set("cached_tokens", times.cached_tokens);
    round.set("completion_tokens", times.generated_tokens);
    round.set("reasoning_tokens", choice.reasoning_tokens);
    round.set("queue_ms", times.queue_ms);
    round.set("prefill_ms", times.prefill_ms);
    round.set("decode_ms", times.decode_ms);
    round.set("ms", total_ms);
    round.set("decode_tokens_per_sec", rate(times.generated_tokens, times.decode_ms));
    round.set("finish_reason", engine::to_string(choice.reason));
    record(std::move(round));
  }
}

void EventFeed::failed(int64_t request, std::string_view dialect, const Error& error, int64_t total_ms) {
  const std::scoped_lock lock(mutex_);
  ++sums_.requests;
  ++sums_.failed;
  Json round = Json::object();
  round.set("type", "round");
  round.set("req", request);
  round.set("dialect", dialect);
  round.set("mode", "plain");
  round.set("ms", total_ms);
  round.set("finish_reason", error.kind == ErrorKind::kCancelled ? "cancelled" : "error");
  record(std::move(round));
}

void EventFeed::record(Json round) {
  ++sums_.rounds;
  round.set("seq", ++last_sequence_);
  round.set("t", seconds_since_1970());
  publish("round", round);
  records_.push_back(std::move(round));
  if (records_.size() > settings_.most_records) records_.pop_front();
}

Json EventFeed::sums_json() const {
  Json out = Json::object();
  out.set("type", "stats");
  out.set("requests", sums_.requests);
  out.set("failed", sums_.failed);
  out.set("rounds", sums_.rounds);
  out.set("prompt_tokens", sums_.prompt_tokens);
  out.set("cached_tokens", sums_.cached_tokens);
  out.set("completion_tokens", sums_.completion_tokens);
  out.set("mean_prefill_tokens_per_sec", rate(sums_.prompt_tokens - sums_.cached_tokens, sums_.prefill_ms));
  out.set("mean_decode_tokens_per_sec", rate(sums_.completion_tokens, sums_.decode_ms));
  return out;
}

Json EventFeed::rounds(size_t limit) const {
  const std::scoped_lock lock(mutex_);
  Json rounds = Json::array();
  const size_t first = records_.size() - std::min(limit, records_.size());
  for (size_t i = first; i < records_.size(); ++i) rounds.push_back(records_[i]);
  Json out = Json::object();
  out.set("rounds", std::move(rounds));
  out.set("stats", sums_json());
  return out;
}

void EventFeed::follow(const std::shared_ptr<Responder>& responder) {
  responder->begin_stream(200, "text/event-stream", {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
  int64_t id = 0;
  {
    const std::scoped_lock lock(mutex_);
    id = ++last_watcher_;
    Watcher& watcher = watchers_[id];
    watcher.responder = responder;
    watcher.last_ms = LiveJobs::now_ms();
    const size_t first = records_.size() - std::min(settings_.replayed_records, records_.size());
    for (size_t i = first; i < records_.size(); ++i) responder->write(frame("round", records_[i]));
    responder->write(frame("stats", sums_json()));
  }
  responder->on_drained(settings_.most_unsent_bytes / 2, [weak = weak_from_this(), id] {
    if (const auto feed = weak.lock()) feed->drained(id);
  });
  responder->on_closed([weak = weak_from_this(), id] {
    if (const auto feed = weak.lock()) {
      const std::scoped_lock lock(feed->mutex_);
      feed->watchers_.erase(id);
    }
  });
}

void EventFeed::publish(std::string_view event, const Json& data) {
  if (watchers_.empty()) return;
  const std::string text = frame(event, data);
  for (auto& [id, watcher] : watchers_) {
    if (watcher.queue.size() >= settings_.most_queued) {
      ++watcher.dropped;
      continue;
    }
    watcher.queue.push_back(text);
    flush(watcher);
  }
}

void EventFeed::flush(Watcher& watcher) {
  while (!watcher.queue.empty() && watcher.responder->unsent_bytes() < settings_.most_unsent_bytes) {
    watcher.responder->write(std::move(watcher.queue.front()));
    watcher.queue.pop_front();
    watcher.last_ms = LiveJobs::now_ms();
    if (!watcher.queue.empty() || watcher.dropped == 0) continue;
    Json lost = Json::object();
    lost.set("type", "dropped");
    lost.set("events", std::exchange(watcher.dropped, 0));
    watcher.responder->write(frame("dropped", lost));
  }
}

void EventFeed::drained(int64_t id) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = watchers_.find(id); found != watchers_.end()) flush(found->second);
}

void EventFeed::end_streams() {
  std::map<int64_t, Watcher> watchers;
  {
    const std::scoped_lock lock(mutex_);
    watchers.swap(watchers_);
  }
  for (auto& [id, watcher] : watchers) watcher.responder->end();
}

size_t EventFeed::watchers() const {
  const std::scoped_lock lock(mutex_);
  return watchers_.size();
}

void EventFeed::tick(int64_t now_ms) {
  const std::scoped_lock lock(mutex_);
  for (auto& [id, watcher] : watchers_) {
    flush(watcher);
    if (settings_.ping_ms < 0 || now_ms - watcher.last_ms < settings_.ping_ms) continue;
    watcher.last_ms = now_ms;
    watcher.responder->write(": ping\n\n");
  }
}

void EventFeed::abort(const Error&) {
  end_streams();
}

}  // namespace vedette::server
