// The route table: every path the server answers, one line each in routes/registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/core.h"
#include "server/dialect.h"

namespace vedette::server {

struct RouteCall {
  ServerCore& core;
  const HttpRequest& request;
  const std::shared_ptr<Responder>& responder;
  std::vector<std::string> captures;  // of "{...}" segments, in order
};

struct Route {
  std::string_view method;   // "GET" answers HEAD too
  std::string_view pattern;  // "/v1/responses/{id}"; "/v1" is optional where `bare` says so
  bool bare;                 // also without /v1
  const Dialect* envelope;   // of errors; null: OpenAI's
  void (*handle)(const RouteCall& call);
};

std::span<const Route> routes();

// The route of a request. Errors: kNotFound ("unknown route …"), and kInvalidRequest with field "method" where the path
// is known for other methods, which `allowed` lists.
struct FoundRoute {
  const Route* route = nullptr;
  std::vector<std::string> captures;
};
Result<FoundRoute> find_route(std::string_view method, std::string_view path, std::string* allowed);

// The handlers, by file.
void handle_chat(const RouteCall& call);  // routes/generation.cpp
void handle_chat_control(const RouteCall& call);
void handle_completions(const RouteCall& call);
void handle_messages(const RouteCall& call);
void handle_messages_count(const RouteCall& call);
void handle_chat_count(const RouteCall& call);
void handle_responses(const RouteCall& call);
void handle_responses_count(const RouteCall& call);
void handle_native_completion(const RouteCall& call);
void handle_infill(const RouteCall& call);

void handle_root(const RouteCall& call);  // routes/health.cpp
void handle_health(const RouteCall& call);
void handle_models(const RouteCall& call);
void handle_model(const RouteCall& call);

void handle_tokenize(const RouteCall& call);  // routes/native.cpp
void handle_detokenize(const RouteCall& call);
void handle_apply_template(const RouteCall& call);
void handle_lora_list(const RouteCall& call);
void handle_lora_set(const RouteCall& call);
void handle_embeddings_refused(const RouteCall& call);
void handle_feature_disabled(const RouteCall& call);

void handle_props(const RouteCall& call);  // routes/introspection.cpp
void handle_props_post(const RouteCall& call);
void handle_slots(const RouteCall& call);
void handle_slot_action(const RouteCall& call);
void handle_metrics(const RouteCall& call);
void handle_settings(const RouteCall& call);  // routes/settings.cpp
void handle_settings_change(const RouteCall& call);
void handle_cache_stats(const RouteCall& call);
void handle_cache_reset(const RouteCall& call);

void handle_response_get(const RouteCall& call);  // routes/responses.cpp
void handle_response_delete(const RouteCall& call);
void handle_response_cancel(const RouteCall& call);

void handle_stream_follow(const RouteCall& call);  // routes/streams.cpp
void handle_stream_delete(const RouteCall& call);
void handle_streams_lookup(const RouteCall& call);

void handle_events(const RouteCall& call);  // routes/events.cpp
void handle_rounds(const RouteCall& call);

void handle_doctor(const RouteCall& call);  // routes/machine.cpp
void handle_machine(const RouteCall& call);
void handle_admin_models(const RouteCall& call);
void handle_admin_integrations(const RouteCall& call);

void handle_admin_status(const RouteCall& call);  // routes/admin.cpp
void handle_admin_load(const RouteCall& call);
void handle_admin_cancel(const RouteCall& call);
void handle_admin_unload(const RouteCall& call);

}  // namespace vedette::server
