// Stored answers and conversations of the Responses API: in memory, bounded, separate for each key's scope.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace vedette::server {

struct ResponseStoreSettings {
  int64_t max_responses = 1024;  // 0: nothing is kept
  int64_t max_response_bytes = int64_t{256} << 20;
  int64_t response_ttl_s = 3600;  // 0: for ever
  int64_t max_conversations = 256;
  int64_t max_conversation_bytes = int64_t{64} << 20;
  int64_t conversation_ttl_s = 3600;
};

struct StoredResponse {
  Json body;     // as answered
  Json history;  // input items and output items of the whole chain, for the next turn
};

// Thread-safe; least recently used entries go first.
class ResponseStore {
 public:
  explicit ResponseStore(const ResponseStoreSettings& settings);
  ~ResponseStore();

  void put(const std::string& scope, const std::string& id, StoredResponse response);
  std::optional<StoredResponse> get(const std::string& scope, const std::string& id);
  bool erase(const std::string& scope, const std::string& id);

  // Items of a conversation (null if unknown), and appending to it (created where unknown).
  std::optional<Json> conversation(const std::string& scope, const std::string& id);
  void append_conversation(const std::string& scope, const std::string& id, const Json& items);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::server
