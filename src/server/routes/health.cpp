// Health and the model list.
#include <fmt/chrono.h>

#include "base/error.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {
namespace {

const char* state_name(ModelHost::State state) {
  switch (state) {
    case ModelHost::State::kNone:
      return "no_model";
    case ModelHost::State::kLoading:
      return "loading";
    case ModelHost::State::kReady:
      return "ok";
    case ModelHost::State::kFailed:
      return "error";
    case ModelHost::State::kSleeping:
      return "sleeping";
  }
  return "error";
}

// The fields of OpenAI's, Anthropic's and llama-server's lists.
Json model_json(const ServedModel& model) {
  Json aliases = Json::array();
  for (const std::string& alias : model.aliases) aliases.push_back(alias);
  Json meta = Json::object();
  meta.set("vocab_size", model.vocab_size());
  meta.set("n_ctx_train", static_cast<int64_t>(model.engine->spec().context_length));
  meta.set("n_ctx", model.engine->context_length());
  meta.set("n_params", model.report.parameters);
  meta.set("size", model.report.estimate.weight_bytes);
  Json own = Json::object();
  own.set("mode", "plain");
  own.set("target", model.id);
  own.set("drafter", Json());
  Json out = Json::object();
  out.set("id", model.id);
  out.set("object", "model");
  out.set("created", model.loaded_at);
  out.set("created_at", fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(model.loaded_at))));
  out.set("lifecycle", "active");
  out.set("owned_by", "vedette");
  out.set("display_name", model.id);
  out.set("type", "model");
  out.set("aliases", std::move(aliases));
  out.set("max_model_len", model.engine->context_length());
  out.set("max_input_tokens", model.engine->context_length());
  out.set("architecture", model.family);
  out.set("meta", std::move(meta));
  out.set("x_vedette", std::move(own));
  return out;
}

}  // namespace

void handle_root(const RouteCall& call) {
  Json out = Json::object();
  out.set("name", "vedette");
  out.set("version", call.core.settings.version);
  out.set("status", state_name(call.core.models.view().state));
  send_json(out, 200, {}, call.responder);
}

// 200 while the process serves; 503 while no model can answer. Load never changes it.
void handle_health(const RouteCall& call) {
  const ModelHost::View view = call.core.models.view();
  Json out = Json::object();
  const std::optional<ModelFetch::View> fetch = call.core.fetch.view();
  const bool has_model = view.state == ModelHost::State::kReady || view.state == ModelHost::State::kSleeping;
  const bool loading = view.state == ModelHost::State::kLoading || (fetch && !has_model);
  out.set("status", state_name(loading ? ModelHost::State::kLoading : view.state));
  if (!view.name.empty()) out.set("model", view.name);
  if (view.state == ModelHost::State::kReady) {
    const auto model = call.core.models.current();
    if (model.ok()) {
      const ServedModel& ready = **model;
      out.set("mode", "plain");
      out.set("target", ready.id);
      out.set("drafter", Json());
      out.set("compute", ops::to_string(ready.report.backend.compute));
      out.set("isa", ready.report.backend.isa);
      out.set("threads", ready.report.backend.threads);
      out.set("kv_type", ops::to_string(ready.report.kv_type));
      out.set("context_window", ready.engine->context_length());
      out.set("max_sequences", ready.report.max_sequences);
      out.set("supports_reasoning_effort", ready.template_knows_effort);
      out.set("thinking_default", ready.defaults.load()->thinking.value_or(true) ? "on" : "off");
      out.set("max_output_tokens", ready.defaults.load()->max_tokens_cap > 0 ? ready.defaults.load()->max_tokens_cap
                                                                             : ready.engine->context_length());
    }
    return send_json(out, 200, {}, call.responder);
  }
  if (view.state == ModelHost::State::kSleeping) return send_json(out, 200, {}, call.responder);
  Json error = Json::object();
  error.set("code", 503);
  error.set("message", loading                                   ? "Loading model"
                       : view.state == ModelHost::State::kFailed ? view.error
                                                                 : "No model is loaded");
  error.set("type", "unavailable_error");
  out.set("error", std::move(error));
  if (fetch && loading) out.set("download", download_json(fetch));
  if (view.state == ModelHost::State::kLoading) {
    Json progress = Json::object();
    progress.set("bytes_done", view.bytes_done);
    progress.set("bytes_total", view.bytes_total);
    out.set("load", std::move(progress));
  }
  send_json(out, 503, {{"Retry-After", "1"}}, call.responder);
}

void handle_models(const RouteCall& call) {
  Json data = Json::array();
  const auto model = call.core.models.current();
  if (model.ok()) data.push_back(model_json(**model));
  Json out = Json::object();
  out.set("object", "list");
  out.set("data", std::move(data));
  out.set("has_more", false);
  const auto& list = out.find("data")->as_array();
  out.set("first_id", list.empty() ? Json() : *list.front().find("id"));
  out.set("last_id", list.empty() ? Json() : *list.back().find("id"));
  send_json(out, 200, {}, call.responder);
}

void handle_model(const RouteCall& call) {
  const auto model = call.core.models.current();
  if (!model.ok()) return send_error(nullptr, model.error(), call.request, call.responder, {});
  const std::string& wanted = call.captures[0];
  bool known = wanted == (*model)->id;
  for (const std::string& alias : (*model)->aliases) known = known || alias == wanted;
  if (!known)
    return send_error(
        nullptr,
        not_found("model", "no model is named '{}'; this server has '{}'", wanted.substr(0, 200), (*model)->id),
        call.request, call.responder, {});
  send_json(model_json(**model), 200, {}, call.responder);
}

}  // namespace vedette::server
