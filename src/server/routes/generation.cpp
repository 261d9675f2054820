// Routes that generate or count.
#include "server/fields.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {

void handle_chat(const RouteCall& call) {
  generate(call.core, kChatDialect, call.request, call.responder);
}
void handle_chat_count(const RouteCall& call) {
  count_tokens(call.core, kChatDialect, call.request, call.responder);
}
// {"id", "action"}: steers an answer under way, which was asked for with reasoning_control.
void handle_chat_control(const RouteCall& call) {
  const auto act = [&]() -> Result<Json> {
    VEDETTE_ASSIGN_OR_RETURN(const Json body, read_body(call.request));
    const Fields fields(body);
    VEDETTE_ASSIGN_OR_RETURN(const auto id, fields.string("id"));
    if (!id || id->empty()) return fields.wrong("id", "the id of a chat completion that is being streamed");
    VEDETTE_ASSIGN_OR_RETURN(const auto action, fields.string("action"));
    if (!action || *action != "reasoning_end") return fields.wrong("action", "\"reasoning_end\"");
    const auto ended = call.core.jobs.end_reasoning(*id, scope_of(call.request, call.core.settings.gate));
    Json out = Json::object();
    out.set("success", ended.value_or(false));
    if (!ended)
      out.set("message", "no chat completion with this id is under way");
    else if (!*ended)
      out.set("message", "this request was not sent with reasoning_control, or its model does not reason");
    return out;
  };
  const auto done = act();
  if (!done.ok()) return send_error(nullptr, done.error(), call.request, call.responder, {});
  send_json(*done, 200, {}, call.responder);
}
void handle_completions(const RouteCall& call) {
  generate(call.core, kCompletionsDialect, call.request, call.responder);
}
void handle_messages(const RouteCall& call) {
  generate(call.core, kMessagesDialect, call.request, call.responder);
}
void handle_messages_count(const RouteCall& call) {
  count_tokens(call.core, kMessagesDialect, call.request, call.responder);
}
void handle_responses(const RouteCall& call) {
  generate(call.core, kResponsesDialect, call.request, call.responder);
}
void handle_responses_count(const RouteCall& call) {
  count_tokens(call.core, kResponsesDialect, call.request, call.responder);
}
void handle_native_completion(const RouteCall& call) {
  generate(call.core, kNativeDialect, call.request, call.responder);
}
void handle_infill(const RouteCall& call) {
  generate(call.core, kInfillDialect, call.request, call.responder);
}

}  // namespace vedette::server
