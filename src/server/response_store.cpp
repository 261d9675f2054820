#include "server/response_store.h"

#include <chrono>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace vedette::server {
namespace {

int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Entries by key, bounded in number, bytes and age; the least recently used goes first.
template <typename Value>
class BoundedMap {
 public:
  BoundedMap(int64_t max_entries, int64_t max_bytes, int64_t ttl_s)
      : max_entries_(max_entries), max_bytes_(max_bytes), ttl_s_(ttl_s) {}

  void put(const std::string& key, Value value, int64_t bytes) {
    erase(key);
    if (max_entries_ <= 0 || bytes > max_bytes_) return;
    entries_.push_front({key, std::move(value), bytes, now_s()});
    index_[key] = entries_.begin();
    bytes_ += bytes;
    while (static_cast<int64_t>(entries_.size()) > max_entries_ || bytes_ > max_bytes_) drop(std::prev(entries_.end()));
  }

  Value* find(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    if (ttl_s_ > 0 && now_s() - found->second->used_s > ttl_s_) {
      drop(found->second);
      return nullptr;
    }
    found->second->used_s = now_s();
    entries_.splice(entries_.begin(), entries_, found->second);
    return &entries_.front().value;
  }

  bool erase(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    drop(found->second);
    return true;
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    int64_t bytes;
    int64_t used_s;
  };
  using Place = typename std::list<Entry>::iterator;

  void drop(Place place) {
    bytes_ -= place->bytes;
    index_.erase(place->key);
    entries_.erase(place);
  }

  const int64_t max_entries_, max_bytes_, ttl_s_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, Place> index_;
  int64_t bytes_ = 0;
};

std::string key_of(const std::string& scope, const std::string& id) {
  return scope + "\n" + id;
}

}  // namespace

struct ResponseStore::Impl {
  explicit Impl(const ResponseStoreSettings& settings)
      : responses(settings.max_responses, settings.max_response_bytes, settings.response_ttl_s),
        conversations(settings.max_conversations, settings.max_conversation_bytes, settings.conversation_ttl_s) {}
  std::mutex mutex;
  BoundedMap<StoredResponse> responses;
  BoundedMap<Json> conversations;
};

ResponseStore::ResponseStore(const ResponseStoreSettings& settings) : impl_(std::make_unique<Impl>(settings)) {}
ResponseStore::~ResponseStore() = default;

void ResponseStore::put(const std::string& scope, const std::string& id, StoredResponse response) {
  const auto bytes = static_cast<int64_t>(response.body.dump().size() + response.history.dump().size());
  const std::scoped_lock lock(impl_->mutex);
  impl_->responses.put(key_of(scope, id), std::move(response), bytes);
}

std::optional<StoredResponse> ResponseStore::get(const std::string& scope, const std::string& id) {
  const std::scoped_lock lock(impl_->mutex);
  const StoredResponse* found = impl_->responses.find(key_of(scope, id));
  return found == nullptr ? std::nullopt : std::optional<StoredResponse>(*found);
}

bool ResponseStore::erase(const std::string& scope, const std::string& id) {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->responses.erase(key_of(scope, id));
}

std::optional<Json> ResponseStore::conversation(const std::string& scope, const std::string& id) {
  const std::scoped_lock lock(impl_->mutex);
  const Json* found = impl_->conversations.find(key_of(scope, id));
  return found == nullptr ? std::nullopt : std::optional<Json>(*found);
}

void ResponseStore::append_conversation(const std::string& scope, const std::string& id, const Json& items) {
  const std::scoped_lock lock(impl_->mutex);
  const std::string key = key_of(scope, id);
  const Json* found = impl_->conversations.find(key);
  Json all = found == nullptr ? Json::array() : *found;
  for (const Json& item : items.as_array()) all.push_back(item);
  const auto bytes = static_cast<int64_t>(all.dump().size());
  impl_->conversations.put(key, std::move(all), bytes);
}

}  // namespace vedette::server
