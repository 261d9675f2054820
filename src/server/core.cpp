#include "server/core.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace vedette::server {

ServerCore::ServerCore(ServerSettings given)
    : settings(std::move(given)),
      responses(settings.responses),
      streams(settings.streams),
      events(std::make_shared<EventFeed>(FeedSettings{.ping_ms = settings.sse_ping_ms})),
      started_at(static_cast<int64_t>(std::time(nullptr))),
      executor(std::max(1, settings.http.threads)) {
  jobs.add(events);
}

}  // namespace vedette::server
