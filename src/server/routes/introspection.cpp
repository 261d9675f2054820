// What the server tells of itself: props, slots, metrics, the prefix cache.
#include <fmt/format.h>

#include "base/error.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {
namespace {

const char* state_name(engine::SlotView::State state) {
  switch (state) {
    case engine::SlotView::State::kWaiting:
      return "waiting";
    case engine::SlotView::State::kPrefill:
      return "prefill";
    case engine::SlotView::State::kDecode:
      return "decode";
    case engine::SlotView::State::kPaused:
      return "paused";
  }
  return "waiting";
}

Json params_json(const GenerationDefaults& defaults) {
  const sampling::SamplingParams& params = defaults.sampling;
  Json out = Json::object();
  out.set("n_predict", defaults.max_tokens);
  out.set("temperature", params.temperature);
  out.set("top_k", params.top_k);
  out.set("top_p", params.top_p);
  out.set("min_p", params.min_p);
  out.set("typical_p", params.typical_p);
  out.set("repeat_last_n", params.repeat_last_n);
  out.set("repeat_penalty", params.repetition_penalty);
  out.set("presence_penalty", params.presence_penalty);
  out.set("frequency_penalty", params.frequency_penalty);
  out.set("dry_multiplier", params.dry_multiplier);
  out.set("xtc_probability", params.xtc_probability);
  out.set("mirostat", params.mirostat);
  out.set("seed", params.seed ? Json(static_cast<int64_t>(*params.seed)) : Json(-1));
  out.set("ignore_eos", defaults.ignore_eos);
  return out;
}

Json slot_json(const engine::SlotView& slot, int64_t index, int64_t context) {
  Json next = Json::object();
  next.set("has_next_token", true);
  next.set("n_remain", slot.max_tokens - slot.generated_tokens);
  next.set("n_decoded", slot.generated_tokens);
  Json out = Json::object();
  out.set("id", index);
  out.set("id_task", static_cast<int64_t>(slot.id));
  out.set("n_ctx", context);
  out.set("is_processing", true);
  out.set("state", state_name(slot.state));
  out.set("priority", slot.priority);
  out.set("n_prompt_tokens", slot.prompt_tokens);
  out.set("n_prompt_tokens_processed", slot.prefilled_tokens);
  out.set("n_prompt_tokens_cache", slot.cached_tokens);
  out.set("next_token", std::move(next));
  return out;
}

// A metric family of the Prometheus text format.
void family(std::string& out, std::string_view name, std::string_view type, std::string_view help, double value) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n{} {}\n", name, help, name, type, name, value);
}

double rate(double tokens, double seconds) {
  return seconds > 0 ? tokens / seconds : 0;
}

std::string metrics_text(ServerCore& core, const engine::EngineStats& stats, const ServedModel* model) {
  std::string out;
  const auto d = [](int64_t value) { return static_cast<double>(value); };
  // llama-server's families, name for name.
  family(out, "llamacpp:prompt_tokens_total", "counter", "Prompt tokens computed.", d(stats.prompt_tokens));
  family(out, "llamacpp:prompt_seconds_total", "counter", "Seconds of prompt steps.", stats.prefill_seconds);
  family(out, "llamacpp:tokens_predicted_total", "counter", "Generated tokens.", d(stats.generated_tokens));
  family(out, "llamacpp:tokens_predicted_seconds_total", "counter", "Seconds of decode steps.", stats.decode_seconds);
  family(out, "llamacpp:n_decode_total", "counter", "Steps run.", d(stats.steps));
  family(out, "llamacpp:n_tokens_max", "counter", "Most tokens of a context.",
         model != nullptr ? d(model->engine->context_length()) : 0);
  family(out, "llamacpp:n_busy_slots_per_decode", "gauge", "Decode rows per step.",
         stats.steps > 0 ? d(stats.decode_rows) / d(stats.steps) : 0);
  family(out, "llamacpp:prompt_tokens_seconds", "gauge", "Mean prompt tokens per second.",
         rate(d(stats.prompt_tokens), stats.prefill_seconds));
  family(out, "llamacpp:predicted_tokens_seconds", "gauge", "Mean generated tokens per second.",
         rate(d(stats.generated_tokens), stats.decode_seconds));
  family(out, "llamacpp:requests_processing", "gauge", "Requests that run.", d(stats.running));
  family(out, "llamacpp:requests_deferred", "gauge", "Requests that wait.", d(stats.waiting));

  family(out, "vedette_requests_total", "counter", "Generation requests received.", d(core.counters.requests));
  family(out, "vedette_requests_failed_total", "counter", "Requests ended by an error.", d(core.counters.failures));
  family(out, "vedette_requests_refused_busy_total", "counter", "Requests refused for a full queue.",
         d(core.counters.refused_busy));
  family(out, "vedette_requests_cancelled_total", "counter", "Requests whose client went away.",
         d(core.counters.cancelled));
  family(out, "vedette_sequences_started_total", "counter", "Sequences started.", d(stats.requests_started));
  family(out, "vedette_sequences_finished_total", "counter", "Sequences finished.", d(stats.requests_finished));
  family(out, "vedette_slots_total", "gauge", "Sequences decoded together at most.",
         model != nullptr ? d(model->report.max_sequences) : 0);
  family(out, "vedette_queue_depth", "gauge", "Sequences that wait.", d(stats.waiting));
  family(out, "vedette_prefill_chunks_total", "counter", "Prefill chunks run.", d(stats.prefill_chunks));
  family(out, "vedette_preemptions_total", "counter", "Sequences sent back to wait.", d(stats.preemptions));
  family(out, "vedette_kv_blocks_total", "gauge", "K/V blocks of all groups.", d(stats.kv_blocks_total));
  family(out, "vedette_kv_blocks_free", "gauge", "K/V blocks that nobody holds.", d(stats.kv_blocks_free));
  family(out, "vedette_kv_blocks_cached", "gauge", "K/V blocks that the prefix cache alone holds.",
         d(stats.kv_blocks_cached));
  family(out, "vedette_kv_bytes_total", "gauge", "Bytes of the K/V pool.", d(stats.kv_bytes_total));
  family(out, "vedette_prompt_cache_hits_total", "counter", "Prompts that re-used a prefix.", d(stats.cache_hits));
  family(out, "vedette_prompt_cache_misses_total", "counter", "Prompts that re-used nothing.", d(stats.cache_misses));
  family(out, "vedette_prompt_cache_tokens_reused_total", "counter", "Prompt tokens re-used.", d(stats.cached_tokens));
  family(out, "vedette_prompt_cache_evictions_total", "counter", "Prefixes given up.", d(stats.cache_evictions));
  family(out, "vedette_prompt_cache_entries", "gauge", "Nodes of the prefix cache.", d(stats.cache_entries));
  return out;
}

}  // namespace

void handle_props(const RouteCall& call) {
  const auto current = call.core.models.current();
  if (!current.ok()) return send_error(nullptr, current.error(), call.request, call.responder, {});
  const ServedModel& model = **current;
  const text::Tokenizer& tokenizer = model.tokenizer();
  Json settings = Json::object();
  settings.set("params", params_json(*model.defaults.load()));
  settings.set("n_ctx", model.engine->context_length());
  Json modalities = Json::object();
  modalities.set("vision", false);
  modalities.set("audio", false);
  Json caps = Json::object();
  caps.set("supports_tools", model.template_knows_tools);
  caps.set("supports_thinking", model.template_knows_thinking);
  caps.set("supports_reasoning_effort", model.template_knows_effort);
  caps.set("tool_syntax", model.message_format.tools->name());
  Json geometry = Json::object();
  geometry.set("family", model.family);
  geometry.set("layers", static_cast<int64_t>(model.engine->spec().layers.size()));
  geometry.set("vocab_size", model.vocab_size());
  Json out = Json::object();
  out.set("default_generation_settings", std::move(settings));
  out.set("total_slots", model.report.max_sequences);
  out.set("model_alias", model.id);
  out.set("model_path", model.path);
  out.set("model_ftype", model.format);
  out.set("modalities", std::move(modalities));
  out.set("endpoint_slots", call.core.settings.endpoints.slots);
  out.set("endpoint_props", call.core.settings.endpoints.props_post);
  out.set("endpoint_metrics", call.core.settings.endpoints.metrics);
  out.set("chat_template", model.template_source);
  out.set("chat_template_caps", std::move(caps));
  out.set("bos_token", tokenizer.bos() ? tokenizer.token_bytes(*tokenizer.bos(), true) : "");
  out.set("eos_token", tokenizer.eos() ? tokenizer.token_bytes(*tokenizer.eos(), true) : "");
  out.set("build_info", "vedette " + call.core.settings.version);
  out.set("is_sleeping", false);
  out.set("kv_cache_mode", ops::to_string(model.report.kv_type));
  out.set("compute", ops::to_string(model.report.backend.compute));
  out.set("speculative", Json());
  out.set("geometry", std::move(geometry));
  send_json(out, 200, {}, call.responder);
}

void handle_props_post(const RouteCall& call) {
  if (!call.core.settings.endpoints.props_post)
    return send_error(nullptr, unsupported("", "POST /props is off; start the server with --props"), call.request,
                      call.responder, {});
  Json out = Json::object();
  out.set("success", true);
  send_json(out, 200, {}, call.responder);
}

void handle_slots(const RouteCall& call) {
  if (!call.core.settings.endpoints.slots)
    return send_error(nullptr, unsupported("", "GET /slots is off; start the server with --slots"), call.request,
                      call.responder, {});
  const auto model = call.core.models.current();
  if (!model.ok()) return send_error(nullptr, model.error(), call.request, call.responder, {});
  const engine::EngineStats stats = (*model)->engine->stats();
  const int64_t context = (*model)->engine->context_length();
  const std::string* strict = call.request.parameter("fail_on_no_slot");
  if (strict != nullptr && *strict != "0" && stats.running >= (*model)->report.max_sequences)
    return send_error(nullptr, unavailable("", "no slot is free"), call.request, call.responder, {});
  Json out = Json::array();
  int64_t index = 0;
  for (const engine::SlotView& slot : stats.slots) out.push_back(slot_json(slot, index++, context));
  for (; index < (*model)->report.max_sequences; ++index) {
    Json idle = Json::object();
    idle.set("id", index);
    idle.set("n_ctx", context);
    idle.set("is_processing", false);
    out.push_back(std::move(idle));
  }
  send_json(out, 200, {}, call.responder);
}

void handle_slot_action(const RouteCall& call) {
  send_error(nullptr,
             unsupported("",
                         "saving and restoring slots is not available; prefixes are kept and found by themselves "
                         "(POST /v1/cache/reset forgets them)"),
             call.request, call.responder, {});
}

void handle_metrics(const RouteCall& call) {
  if (!call.core.settings.endpoints.metrics)
    return send_error(nullptr, unsupported("", "GET /metrics is off; start the server with --metrics"), call.request,
                      call.responder, {});
  const auto model = call.core.models.current();
  HttpResponse response;
  response.body = metrics_text(call.core, model.ok() ? (*model)->engine->stats() : engine::EngineStats(),
                               model.ok() ? model->get() : nullptr);
  response.content_type = "text/plain; version=0.0.4";
  response.headers = {{"Process-Start-Time-Unix", std::to_string(call.core.started_at)}};
  call.responder->send(std::move(response));
}

void handle_cache_stats(const RouteCall& call) {
  const auto model = call.core.models.current();
  if (!model.ok()) return send_error(nullptr, model.error(), call.request, call.responder, {});
  const engine::EngineStats stats = (*model)->engine->stats();
  Json out = Json::object();
  out.set("entries", stats.cache_entries);
  out.set("hits", stats.cache_hits);
  out.set("misses", stats.cache_misses);
  out.set("evictions", stats.cache_evictions);
  out.set("tokens_reused", stats.cached_tokens);
  out.set("kv_blocks_total", stats.kv_blocks_total);
  out.set("kv_blocks_free", stats.kv_blocks_free);
  out.set("kv_blocks_cached", stats.kv_blocks_cached);
  out.set("kv_bytes_total", stats.kv_bytes_total);
  out.set("block_tokens", ops::kBlockTokens);
  out.set("kv_cache_mode", ops::to_string((*model)->report.kv_type));
  send_json(out, 200, {}, call.responder);
}

void handle_cache_reset(const RouteCall& call) {
  const auto model = call.core.models.current();
  if (!model.ok()) return send_error(nullptr, model.error(), call.request, call.responder, {});
  (*model)->engine->reset_prefix_cache();
  Json out = Json::object();
  out.set("success", true);
  send_json(out, 200, {}, call.responder);
}

}  // namespace vedette::server
