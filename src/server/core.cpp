#include "server/core.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace vedette::server {

ServerCore::ServerCore(ServerSettings given)
    : settings(std::move(given)),
      responses(settings.responses),
      streams(settings.streams),
      started_at(static_cast<int64_t>(std::time(nullptr))),
      executor(std::max(1, settings.http.threads)) {}

}  // namespace vedette::server
