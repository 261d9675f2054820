// Stored answers of the Responses API.
#include "base/error.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {
namespace {

Error unknown(const std::string& id) {
  return not_found("response_id", "no response '{}' is stored", id.substr(0, 200));
}

}  // namespace

void handle_response_get(const RouteCall& call) {
  const auto stored = call.core.responses.get(scope_of(call.request, call.core.settings.gate), call.captures[0]);
  if (!stored) return send_error(&kResponsesDialect, unknown(call.captures[0]), call.request, call.responder, {});
  send_json(stored->body, 200, {}, call.responder);
}

void handle_response_delete(const RouteCall& call) {
  if (!call.core.responses.erase(scope_of(call.request, call.core.settings.gate), call.captures[0]))
    return send_error(&kResponsesDialect, unknown(call.captures[0]), call.request, call.responder, {});
  Json out = Json::object();
  out.set("id", call.captures[0]);
  out.set("object", "response");
  out.set("deleted", true);
  send_json(out, 200, {}, call.responder);
}

// One that is being made ends with what there is of it; of one that is over nothing changes.
void handle_response_cancel(const RouteCall& call) {
  const std::string scope = scope_of(call.request, call.core.settings.gate);
  const auto told = [request = call.request, responder = call.responder](const Result<Json>& body) {
    if (!body.ok()) return send_error(&kResponsesDialect, body.error(), request, responder, {});
    send_json(*body, 200, {}, responder);
  };
  if (call.core.jobs.cancel(scope, call.captures[0], told)) return;
  const auto stored = call.core.responses.get(scope, call.captures[0]);
  if (!stored) return send_error(&kResponsesDialect, unknown(call.captures[0]), call.request, call.responder, {});
  send_json(stored->body, 200, {}, call.responder);
}

}  // namespace vedette::server
