// What happens: finished requests, and a live stream of them.
#include <charconv>

#include "base/error.h"
#include "server/event_feed.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {

void handle_events(const RouteCall& call) {
  if (call.request.method == "HEAD")
    return call.responder->send({.status = 200, .body = "", .content_type = "text/event-stream"});
  call.core.events->follow(call.responder);
}

void handle_rounds(const RouteCall& call) {
  size_t limit = 128;
  if (const std::string* text = call.request.parameter("limit")) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
    if (error != std::errc() || end != text->data() + text->size())
      return send_error(nullptr, invalid_request("limit", "limit: expected a count, found '{}'", text->substr(0, 60)),
                        call.request, call.responder, {});
  }
  send_json(call.core.events->rounds(limit), 200, {}, call.responder);
}

}  // namespace vedette::server
