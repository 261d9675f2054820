#include "base/error.h"
#include "server/route.h"

namespace vedette::server {
namespace {

constexpr const Dialect* kMessages = &kMessagesDialect;
constexpr const Dialect* kResponses = &kResponsesDialect;

const Route kRoutes[] = {
    {"POST", "/v1/chat/completions", true, nullptr, handle_chat},
    {"POST", "/v1/chat/completions/input_tokens", true, nullptr, handle_chat_count},
    {"POST", "/v1/chat/completions/control", false, nullptr, handle_chat_control},
    {"POST", "/v1/completions", false, nullptr, handle_completions},
    {"POST", "/v1/messages", true, kMessages, handle_messages},
    {"POST", "/v1/messages/count_tokens", true, kMessages, handle_messages_count},
    {"POST", "/v1/responses", true, kResponses, handle_responses},
    {"POST", "/v1/responses/input_tokens", true, kResponses, handle_responses_count},
    {"GET", "/v1/responses/{id}", true, kResponses, handle_response_get},
    {"DELETE", "/v1/responses/{id}", true, kResponses, handle_response_delete},
    {"POST", "/v1/responses/{id}/cancel", true, kResponses, handle_response_cancel},
    {"GET", "/v1/models", true, nullptr, handle_models},
    {"GET", "/v1/models/{id}", true, nullptr, handle_model},

    {"POST", "/completion", false, nullptr, handle_native_completion},
    {"POST", "/completions", false, nullptr, handle_native_completion},
    {"POST", "/infill", false, nullptr, handle_infill},
    {"POST", "/tokenize", false, nullptr, handle_tokenize},
    {"POST", "/detokenize", false, nullptr, handle_detokenize},
    {"POST", "/apply-template", false, nullptr, handle_apply_template},
    {"GET", "/props", false, nullptr, handle_props},
    {"POST", "/props", false, nullptr, handle_props_post},
    {"GET", "/slots", false, nullptr, handle_slots},
    {"POST", "/slots/{id}", false, nullptr, handle_slot_action},
    {"GET", "/metrics", false, nullptr, handle_metrics},
    {"GET", "/lora-adapters", false, nullptr, handle_lora_list},
    {"POST", "/lora-adapters", false, nullptr, handle_lora_set},
    {"GET", "/v1/settings", true, nullptr, handle_settings},
    {"PATCH", "/v1/settings", true, nullptr, handle_settings_change},
    {"GET", "/v1/cache/stats", true, nullptr, handle_cache_stats},
    {"POST", "/v1/cache/reset", true, nullptr, handle_cache_reset},
    {"POST", "/v1/embeddings", true, nullptr, handle_embeddings_refused},
    {"POST", "/embedding", false, nullptr, handle_embeddings_refused},
    {"POST", "/v1/rerank", true, nullptr, handle_embeddings_refused},
    {"POST", "/v1/reranking", true, nullptr, handle_embeddings_refused},
    {"GET", "/tools", false, nullptr, handle_feature_disabled},
    {"POST", "/tools", false, nullptr, handle_feature_disabled},
    {"GET", "/cors-proxy", false, nullptr, handle_feature_disabled},
    {"POST", "/cors-proxy", false, nullptr, handle_feature_disabled},

    {"GET", "/v1/stream", false, nullptr, handle_stream_follow},
    {"DELETE", "/v1/stream", false, nullptr, handle_stream_delete},
    {"POST", "/v1/streams/lookup", false, nullptr, handle_streams_lookup},

    {"GET", "/", false, nullptr, handle_root},
    {"GET", "/v1/health", true, nullptr, handle_health},
    {"GET", "/doctor", false, nullptr, handle_doctor},
    {"GET", "/machine", false, nullptr, handle_machine},
    {"GET", "/events", false, nullptr, handle_events},
    {"GET", "/rounds", false, nullptr, handle_rounds},
    {"GET", "/admin/models", false, nullptr, handle_admin_models},
    {"GET", "/admin/integrations", false, nullptr, handle_admin_integrations},
    {"GET", "/admin/status", false, nullptr, handle_admin_status},
    {"POST", "/admin/load", false, nullptr, handle_admin_load},
    {"POST", "/admin/load/cancel", false, nullptr, handle_admin_cancel},
    {"POST", "/admin/unload", false, nullptr, handle_admin_unload},
};

std::string_view next_segment(std::string_view& path) {
  path.remove_prefix(path.starts_with('/') ? 1 : 0);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>& captures) {
  captures.clear();
  while (!pattern.empty() || !path.empty()) {
    const std::string_view expected = next_segment(pattern);
    const std::string_view found = next_segment(path);
    if (expected.starts_with('{')) {
      if (found.empty()) return false;
      captures.emplace_back(found);
    } else if (expected != found) {
      return false;
    }
  }
  return true;
}

bool matches(const Route& route, std::string_view path, std::vector<std::string>& captures) {
  if (matches(route.pattern, path, captures)) return true;
  return route.bare && matches(route.pattern.substr(3), path, captures);
}

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

Result<FoundRoute> find_route(std::string_view method, std::string_view path, std::string* allowed) {
  FoundRoute found;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : kRoutes) {
    if (!matches(route, path, found.captures)) continue;
    if (route.method == wanted) {
      found.route = &route;
      return found;
    }
    *allowed += (allowed->empty() ? "" : ", ") + std::string(route.method);
  }
  if (!allowed->empty())
    return invalid_request("method", "{} {}: this path answers {}", method, path.substr(0, 200), *allowed);
  return not_found("", "unknown route {} {}; docs/api.md lists the routes", method, path.substr(0, 200));
}

}  // namespace vedette::server
