// Routes that generate or count.
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {

void handle_chat(const RouteCall& call) {
  generate(call.core, kChatDialect, call.request, call.responder);
}
void handle_chat_count(const RouteCall& call) {
  count_tokens(call.core, kChatDialect, call.request, call.responder);
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
