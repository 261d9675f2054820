// What happens, for those who watch: finished requests (GET /rounds) and a live stream (GET /events). Numbers alone,
// never texts.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/http.h"
#include "server/job.h"
#include "server/live_jobs.h"

namespace vedette::server {

struct FeedSettings {
  size_t most_records = 512;
  size_t replayed_records = 32;  // when a watcher connects
  size_t most_queued = 256;      // events a slow watcher may lag behind; what comes beyond is dropped
  size_t most_unsent_bytes = size_t{64} << 10;
  int ping_ms = 15'000;  // below 0: none
};

// Thread-safe; publishing never blocks on a watcher.
class EventFeed final : public LiveJob, public std::enable_shared_from_this<EventFeed> {
 public:
  explicit EventFeed(const FeedSettings& settings) : settings_(settings) {}

  int64_t next_request() { return ++last_request_; }
  // {type:"prefill", req, mode, processed, total[, done:true]}
  void prefill(int64_t request, int64_t processed, int64_t total);
  // One record per choice of a finished request.
  void finished(int64_t request, std::string_view dialect, const JobStart& start, const JobAnswer& answer,
                int64_t total_ms);
  void failed(int64_t request, std::string_view dialect, const Error& error, int64_t total_ms);

  // The last `limit` records, oldest first, and the sums over all.
  Json rounds(size_t limit) const;
  // Replays, tells the sums, then follows until the client is gone or end_streams() is called.
  void follow(const std::shared_ptr<Responder>& responder);
  // Ends every live stream (the model is swapped, the server stops).
  void end_streams();
  size_t watchers() const;

  void tick(int64_t now_ms) override;
  void abort(const Error& error) override;

 private:
  struct Watcher {
    std::shared_ptr<Responder> responder;
    std::deque<std::string> queue;
    int64_t dropped = 0;
    int64_t last_ms = 0;
  };
  struct Sums {
    int64_t requests = 0, failed = 0, rounds = 0;
    int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
    double prefill_ms = 0, decode_ms = 0;
  };
  void record(Json round);
  Json sums_json() const;
  void publish(std::string_view event, const Json& data);
  void flush(Watcher& watcher);
  void drained(int64_t id);

  const FeedSettings settings_;
  std::atomic<int64_t> last_request_{0};
  mutable std::mutex mutex_;
  std::deque<Json> records_;
  Sums sums_;
  int64_t last_sequence_ = 0;
  std::map<int64_t, Watcher> watchers_;
  int64_t last_watcher_ = 0;
};

}  // namespace vedette::server
