// Resumable streams: the bytes of a stream that its client named by X-Conversation-Id, kept for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http.h"

namespace vedette::server {

struct StreamStoreSettings {
  int64_t most_bytes = int64_t{4} << 20;  // of one stream; beyond, the oldest are dropped
  int64_t ttl_s = 300;                    // after its end
  int64_t max_finished = 256;
};

struct StreamView {
  std::string id;
  bool is_done = false;
  int64_t total_bytes = 0;
  int64_t started_at = 0, completed_at = 0;  // seconds since 1970; 0: not yet
};

// Thread-safe. Sessions are of one scope each; a new stream of the same id replaces the old one, which is cancelled.
class StreamStore {
 public:
  explicit StreamStore(const StreamStoreSettings& settings);
  ~StreamStore();

  // cancel: ends the generation behind the stream.
  void open(const std::string& scope, const std::string& id, std::function<void()> cancel);
  void append(const std::string& scope, const std::string& id, std::string_view bytes);
  void finish(const std::string& scope, const std::string& id);

  // Writes bytes from `offset` on and what still comes to the responder. Errors: kNotFound; kInvalidRequest where the
  // offset lies beyond the end or was dropped.
  Status follow(const std::string& scope, const std::string& id, int64_t offset, std::shared_ptr<Responder> responder);
  std::vector<StreamView> lookup(const std::string& scope, std::span<const std::string> ids);
  bool remove(const std::string& scope, const std::string& id);  // cancels what still runs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::server
