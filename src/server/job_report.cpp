#include "server/job_report.h"

#include <algorithm>

namespace vedette::server {
namespace {

Json rate(int64_t tokens, double milliseconds) {
  return tokens > 0 && milliseconds > 0 ? Json(1000.0 * static_cast<double>(tokens) / milliseconds) : Json();
}

Json strings(const std::vector<std::string>& texts) {
  Json out = Json::array();
  for (const std::string& text : texts) out.push_back(text);
  return out;
}

// Why not all of the prompt was re-used; where prompts parted, what stood there and what was sent.
Json cache_json(const ServedModel& model, const std::vector<int32_t>& prompt, const engine::CacheReport& cache) {
  Json out = Json::object();
  out.set("cached_tokens", cache.cached_tokens);
  out.set("matched_tokens", cache.matched_tokens);
  out.set("reason", cache.reason.empty() ? Json() : Json(cache.reason));
  if (cache.reason == "differs") {
    const auto at = std::min(static_cast<size_t>(cache.matched_tokens), prompt.size());
    const std::span<const int32_t> found = std::span(prompt).subspan(at, std::min<size_t>(8, prompt.size() - at));
    out.set("position", cache.matched_tokens);
    out.set("before", model.tokenizer().decode(cache.expected, true));
    out.set("now", model.tokenizer().decode(found, true));
  }
  return out;
}

}  // namespace

Json report_job(const ServedModel& model, const GenerateJob& job, const JobStart& start, const JobAnswer& answer) {
  Json out = Json::object();
  if (answer.choices.empty()) return out;
  const ChoiceAnswer& first = answer.choices.front();
  double prefill_ms = 0, decode_ms = 0;
  int64_t decoded = 0;
  for (const ChoiceAnswer& choice : answer.choices) {
    prefill_ms += choice.timings.prefill_ms;
    decode_ms = std::max(decode_ms, choice.timings.decode_ms);
    decoded += std::max<int64_t>(0, choice.timings.generated_tokens - 1);
  }
  const double whole_ms = first.timings.queue_ms + prefill_ms + decode_ms;
  out.set("mode", "plain");
  out.set("accept_len", answer.completion_tokens > 0 ? Json(1.0) : Json());
  out.set("prompt_tokens", answer.prompt_tokens);
  out.set("cached_tokens", answer.cached_tokens);
  out.set("completion_tokens", answer.completion_tokens);
  out.set("context_tokens", first.timings.prompt_tokens + first.timings.generated_tokens);
  out.set("queue_seconds", first.timings.queue_ms / 1000);
  out.set("prefill_seconds", prefill_ms / 1000);
  out.set("decode_seconds", decode_ms / 1000);
  out.set("ttft_seconds", (first.timings.queue_ms + first.timings.prefill_ms) / 1000);
  out.set("prefill_tokens_per_sec", rate(answer.prompt_tokens - answer.cached_tokens, prefill_ms));
  out.set("decode_tokens_per_sec", rate(decoded, decode_ms));
  out.set("tokens_per_sec", rate(answer.completion_tokens, whole_ms));
  out.set("ceiling_tokens_per_sec", Json());  // unknown until this machine's bandwidth was measured
  out.set("roofline_ratio", Json());
  out.set("seed", std::to_string(first.seed));  // 64 bits: text, as JSON numbers are 53
  out.set("max_tokens_clamped", first.max_tokens_clamped);
  Json cache = cache_json(model, start.prompts.front(), first.cache);
  out.set("cache", std::move(cache));
  if (!job.warnings.empty()) out.set("warnings", strings(job.warnings));
  if (!job.ignored_fields.empty()) out.set("ignored_fields", strings(job.ignored_fields));
  return out;
}

}  // namespace vedette::server
