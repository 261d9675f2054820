#include "server/stream_store.h"

#include <chrono>
#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace vedette::server {
namespace {

struct Session {
  std::string bytes;    // from offset `dropped` on
  int64_t dropped = 0;  // bytes at the front that were given up
  bool done = false;
  int64_t started_at = 0, completed_at = 0;
  std::function<void()> cancel;
  std::vector<std::shared_ptr<Responder>> followers;
  int64_t total() const { return dropped + static_cast<int64_t>(bytes.size()); }
};

int64_t now_s() {
  return static_cast<int64_t>(std::time(nullptr));
}

}  // namespace

struct StreamStore::Impl {
  explicit Impl(const StreamStoreSettings& given) : settings(given) {}

  Session* find(const std::string& scope, const std::string& id) {
    forget_old();
    const auto found = sessions.find({scope, id});
    return found == sessions.end() ? nullptr : &found->second;
  }

  // What has ended long ago, and the oldest of too many.
  void forget_old() {
    const int64_t now = now_s();
    int64_t finished = 0;
    auto oldest = sessions.end();
    for (auto at = sessions.begin(); at != sessions.end();) {
      if (at->second.done && now - at->second.completed_at > settings.ttl_s) {
        at = sessions.erase(at);
        continue;
      }
      if (at->second.done) {
        ++finished;
        if (oldest == sessions.end() || at->second.completed_at < oldest->second.completed_at) oldest = at;
      }
      ++at;
    }
    if (finished > settings.max_finished) sessions.erase(oldest);
  }

  const StreamStoreSettings settings;
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, Session> sessions;
};

StreamStore::StreamStore(const StreamStoreSettings& settings) : impl_(std::make_unique<Impl>(settings)) {}
StreamStore::~StreamStore() = default;

void StreamStore::open(const std::string& scope, const std::string& id, std::function<void()> cancel) {
  std::function<void()> old;
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->forget_old();
    Session& session = impl_->sessions[{scope, id}];
    if (!session.done) old = std::move(session.cancel);
    for (const auto& follower : session.followers) follower->end();
    session = {};
    session.started_at = now_s();
    session.cancel = std::move(cancel);
  }
  if (old) old();
}

void StreamStore::append(const std::string& scope, const std::string& id, std::string_view bytes) {
  const std::scoped_lock lock(impl_->mutex);
  Session* session = impl_->find(scope, id);
  if (session == nullptr || session->done) return;
  session->bytes += bytes;
  const auto excess = static_cast<int64_t>(session->bytes.size()) - impl_->settings.most_bytes;
  if (excess > 0) {
    session->bytes.erase(0, static_cast<size_t>(excess));
    session->dropped += excess;
  }
  for (const auto& follower : session->followers) follower->write(std::string(bytes));
}

void StreamStore::finish(const std::string& scope, const std::string& id) {
  const std::scoped_lock lock(impl_->mutex);
  Session* session = impl_->find(scope, id);
  if (session == nullptr || session->done) return;
  session->done = true;
  session->completed_at = now_s();
  session->cancel = nullptr;
  for (const auto& follower : session->followers) follower->end();
  session->followers.clear();
}

Status StreamStore::follow(const std::string& scope, const std::string& id, int64_t offset,
                           std::shared_ptr<Responder> responder) {
  const std::scoped_lock lock(impl_->mutex);
  Session* session = impl_->find(scope, id);
  if (session == nullptr) return not_found("conv_id", "no stream is kept for conv_id '{}'", id.substr(0, 200));
  if (offset < session->dropped || offset > session->total())
    return invalid_request("from", "from: expected an offset from {} to {}, found {}", session->dropped,
                           session->total(), offset);
  responder->begin_stream(200, "text/event-stream", {{"Cache-Control", "no-cache"}});
  std::string kept = session->bytes.substr(static_cast<size_t>(offset - session->dropped));
  if (!kept.empty()) responder->write(std::move(kept));
  if (session->done)
    responder->end();
  else
    session->followers.push_back(std::move(responder));
  return ok_status();
}

std::vector<StreamView> StreamStore::lookup(const std::string& scope, std::span<const std::string> ids) {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<StreamView> out;
  for (const std::string& id : ids) {
    const Session* session = impl_->find(scope, id);
    if (session != nullptr)
      out.push_back({id, session->done, session->total(), session->started_at, session->completed_at});
  }
  return out;
}

bool StreamStore::remove(const std::string& scope, const std::string& id) {
  std::function<void()> cancel;
  {
    const std::scoped_lock lock(impl_->mutex);
    Session* session = impl_->find(scope, id);
    if (session == nullptr) return false;
    cancel = std::move(session->cancel);
    for (const auto& follower : session->followers) follower->end();
    impl_->sessions.erase({scope, id});
  }
  if (cancel) cancel();
  return true;
}

}  // namespace vedette::server
