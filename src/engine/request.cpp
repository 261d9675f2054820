#include "engine/request.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "sampling/logprobs.h"

namespace vedette::engine {
namespace {

Status check_ids(const char* field, std::span<const int32_t> ids, int64_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab_size)
      return invalid_request(field, "{}[{}] is token id {}, must be from 0 to {}", field, i, ids[i], vocab_size - 1);
  return ok_status();
}

Status check_stops(const std::vector<std::string>& stops, bool has_text) {
  if (!stops.empty() && !has_text)
    return invalid_request("stop", "stop strings need a tokenizer and the model has none; use stop token ids");
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) return invalid_request("stop", "stop[{}] is empty, must hold at least one character", i);
    if (!is_valid_utf8(stops[i])) return invalid_request("stop", "stop[{}] is not valid UTF-8", i);
  }
  return ok_status();
}

sampling::LoopParams loop_params(const LoopLimits& limits) {
  return {
      .max_pattern_size = limits.max_pattern, .min_pattern_size = limits.min_pattern, .min_count = limits.min_count};
}

PrefixPlan prefix_plan(CacheUse&& use, bool adopts, int64_t prompt_tokens) {
  PrefixPlan plan;
  plan.enabled = use.enabled;
  plan.adopts = adopts;
  plan.scope = std::move(use.scope);
  // Where nothing is known of the next turn, the same prompt may come again; its last token is computed each time.
  const int64_t history = use.history_tokens < 0 ? prompt_tokens - 1 : std::min(use.history_tokens, prompt_tokens);
  plan.history_cut = history - history % ops::kBlockTokens;
  return plan;
}

Status check(const GenerateRequest& request, const RequestLimits& limits) {
  if (request.prompt.empty()) return invalid_request("prompt", "prompt is empty: at least one token is needed");
  const int64_t tokens = static_cast<int64_t>(request.prompt.size());
  // The words and both numbers are what clients look for.
  if (tokens >= limits.context_length)
    return invalid_request("prompt", "prompt is too long: {} tokens > {} maximum", tokens, limits.context_length);
  VEDETTE_RETURN_IF_ERROR(check_ids("prompt", request.prompt, limits.vocab_size));
  VEDETTE_RETURN_IF_ERROR(check_ids("stop_ids", request.stop_ids, limits.vocab_size));
  VEDETTE_RETURN_IF_ERROR(check_ids("visible_specials", request.visible_specials, INT32_MAX));
  VEDETTE_RETURN_IF_ERROR(check_stops(request.stop, limits.tokenizer != nullptr));
  if (request.max_tokens < -1)
    return invalid_request("max_tokens", "max_tokens is {}, must be at least 0, or -1 for no limit",
                           request.max_tokens);
  if (request.logprobs < -1 || request.logprobs > sampling::kMaxTopLogprobs)
    return invalid_request("logprobs", "logprobs is {}, must be from 0 to {}, or -1 for none", request.logprobs,
                           sampling::kMaxTopLogprobs);
  if (request.prompt_logprobs && request.logprobs < 0)
    return invalid_request("prompt_logprobs", "prompt_logprobs needs logprobs to be 0 or more, found {}",
                           request.logprobs);
  VEDETTE_RETURN_IF_ERROR(sampling::validate(loop_params(request.loop)));
  VEDETTE_RETURN_IF_ERROR(sampling::validate(request.sampling));
  if (sampling::names_infill(request.sampling) && !request.sampling.infill_vocabulary)
    return invalid_request("samplers", "samplers names infill, which needs the vocabulary (infill_vocabulary)");
  for (const auto& [id, bias] : request.sampling.logit_bias)
    if (id >= limits.vocab_size)
      return invalid_request("logit_bias", "logit_bias names token id {}, must be from 0 to {}", id,
                             limits.vocab_size - 1);
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<Sequence>> make_sequence(GenerateRequest request, EventSink sink, const RequestLimits& limits) {
  VEDETTE_RETURN_IF_ERROR(check(request, limits));
  const int64_t prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const int64_t room = limits.context_length - prompt_tokens;
  std::vector<int32_t> end_ids = request.stop_ids;
  if (!request.ignore_eos) end_ids.insert(end_ids.end(), limits.eos.begin(), limits.eos.end());
  std::sort(end_ids.begin(), end_ids.end());
  const uint64_t seed = request.sampling.seed ? *request.sampling.seed : sampling::draw_seed();

  std::optional<text::Detokenizer> detokenizer;
  if (limits.tokenizer)
    detokenizer.emplace(*limits.tokenizer, request.special_in_text, std::move(request.visible_specials));
  std::optional<sampling::LoopDetector> loop;
  if (request.loop.max_pattern > 0) loop.emplace(loop_params(request.loop));
  auto sequence = std::make_unique<Sequence>(Sequence{
      .sink = std::move(sink),
      .ids = std::move(request.prompt),
      .prompt_tokens = prompt_tokens,
      .max_tokens = request.max_tokens < 0 ? room : std::min(room, request.max_tokens),
      .max_tokens_clamped = request.max_tokens > room,
      .end_ids = std::move(end_ids),
      .sampler = sampling::SamplerChain(request.sampling, seed, limits.vocab_size),
      .detokenizer = std::move(detokenizer),
      .stops = StopMatcher(std::move(request.stop)),
      .constraint = request.constraint ? request.constraint->clone() : nullptr,
      .loop = std::move(loop),
      .logprobs = request.logprobs,
      .prompt_told = request.prompt_logprobs ? 0 : -1,
      .progress = request.progress,
      .priority = request.priority,
      .blocks = {},
      .prefix = prefix_plan(std::move(request.cache), !request.prompt_logprobs, prompt_tokens),
      .submitted = Clock::now(),
      .started = {},
      .first_token = {},
  });
  sequence->ids.reserve(static_cast<size_t>(prompt_tokens + sequence->max_tokens));
  return sequence;
}

}  // namespace vedette::engine
