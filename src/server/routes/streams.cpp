// Resumable streams: replay from an offset, look up, remove.
#include <charconv>

#include "base/error.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {
namespace {

Result<std::string> conversation_of(const HttpRequest& request) {
  const std::string* id = request.parameter("conv_id");
  if (id == nullptr || id->empty())
    return invalid_request("conv_id", "conv_id: expected the X-Conversation-Id of a stream in the query, found none");
  return *id;
}

Result<int64_t> offset_of(const HttpRequest& request) {
  const std::string* text = request.parameter("from");
  if (text == nullptr) return int64_t{0};
  int64_t offset = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), offset);
  if (error != std::errc() || end != text->data() + text->size() || offset < 0)
    return invalid_request("from", "from: expected an offset in bytes, found '{}'", text->substr(0, 60));
  return offset;
}

}  // namespace

void handle_stream_follow(const RouteCall& call) {
  const auto id = conversation_of(call.request);
  if (!id.ok()) return send_error(nullptr, id.error(), call.request, call.responder, {});
  const auto offset = offset_of(call.request);
  if (!offset.ok()) return send_error(nullptr, offset.error(), call.request, call.responder, {});
  const Status done =
      call.core.streams.follow(scope_of(call.request, call.core.settings.gate), *id, *offset, call.responder);
  if (!done.ok()) send_error(nullptr, done.error(), call.request, call.responder, {});
}

void handle_stream_delete(const RouteCall& call) {
  const auto id = conversation_of(call.request);
  if (!id.ok()) return send_error(nullptr, id.error(), call.request, call.responder, {});
  if (!call.core.streams.remove(scope_of(call.request, call.core.settings.gate), *id))
    return send_error(nullptr, not_found("conv_id", "no stream is kept for conv_id '{}'", id->substr(0, 200)),
                      call.request, call.responder, {});
  call.responder->send({.status = 204, .body = ""});
}

void handle_streams_lookup(const RouteCall& call) {
  const auto body = read_body(call.request);
  if (!body.ok()) return send_error(nullptr, body.error(), call.request, call.responder, {});
  const Fields fields(*body);
  const auto ids = fields.strings("conversation_ids", 4096);
  if (!ids.ok()) return send_error(nullptr, ids.error(), call.request, call.responder, {});
  if (!*ids)
    return send_error(nullptr, fields.wrong("conversation_ids", "a list of strings"), call.request, call.responder, {});
  Json out = Json::array();
  for (const StreamView& view : call.core.streams.lookup(scope_of(call.request, call.core.settings.gate), **ids)) {
    Json entry = Json::object();
    entry.set("conversation_id", view.id);
    entry.set("is_done", view.is_done);
    entry.set("total_bytes", view.total_bytes);
    entry.set("started_at", view.started_at);
    entry.set("completed_at", view.completed_at > 0 ? Json(view.completed_at) : Json());
    out.push_back(std::move(entry));
  }
  send_json(out, 200, {}, call.responder);
}

}  // namespace vedette::server
