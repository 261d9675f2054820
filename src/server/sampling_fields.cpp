// The sampling fields that all dialects share, by llama-server's, OpenAI's and vLLM's names.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampling/loop_detector.h"
#include "sampling/parameters.h"
#include "server/bias_fields.h"
#include "server/dialect.h"
#include "server/fields.h"

namespace vedette::server {
namespace {

using sampling::SamplingParams;

constexpr size_t kMostStops = 64;

constexpr std::string_view kOthers[] = {
    "seed",
    "logit_bias",
    "language_bias",
    "samplers",
    "p_less",
    "stop",
    "stop_sequences",
    "ignore_eos",
    "dry_sequence_breakers",
    "max_pattern_size",
    "min_pattern_size",
    "min_count",
    "cache_prompt",
    "prompt_cache_key",
    "priority",
    "thinking_budget_tokens",
    "reasoning_budget_tokens",
    "thinking_token_budget",
    "thinking_budget",
};

Status read_seed(const Fields& fields, SamplingParams& params) {
  VEDETTE_ASSIGN_OR_RETURN(auto seed, fields.integer("seed", -1, std::numeric_limits<int64_t>::max()));
  if (seed && *seed >= 0) params.seed = static_cast<uint64_t>(*seed);
  if (seed && *seed < 0) params.seed.reset();
  return ok_status();
}

Status read_loop(const Fields& fields, GenerateJob& job) {
  VEDETTE_RETURN_IF_ERROR(fields.store("max_pattern_size", sampling::kLoopNumber, job.loop.max_pattern));
  VEDETTE_RETURN_IF_ERROR(fields.store("min_pattern_size", sampling::kLoopNumber, job.loop.min_pattern));
  VEDETTE_RETURN_IF_ERROR(fields.store("min_count", sampling::kLoopNumber, job.loop.min_count));
  job.loop.min_pattern = std::max(1, job.loop.min_pattern);
  if (job.loop.max_pattern == 0) return ok_status();
  if (job.loop.min_pattern > job.loop.max_pattern)
    return invalid_request("min_pattern_size", "min_pattern_size: expected at most max_pattern_size ({}), found {}",
                           job.loop.max_pattern, job.loop.min_pattern);
  if (job.loop.min_count < 2)
    return invalid_request("min_count", "min_count: expected at least 2 with max_pattern_size, found {}",
                           job.loop.min_count);
  return ok_status();
}

Status read_stops(const Fields& fields, GenerateJob& job) {
  for (const std::string_view name : {"stop", "stop_sequences"}) {
    VEDETTE_ASSIGN_OR_RETURN(auto stops, fields.strings(name, kMostStops));
    if (!stops) continue;
    for (size_t i = 0; i < stops->size(); ++i)
      if ((*stops)[i].empty())
        return invalid_request(fields.path(name), "{}[{}]: expected at least one character, found an empty string",
                               name, i);
    job.stop.insert(job.stop.end(), stops->begin(), stops->end());
  }
  return ok_status();
}

Status read_budget(const Fields& fields, GenerateJob& job) {
  for (const std::string_view name :
       {"thinking_budget", "thinking_token_budget", "reasoning_budget_tokens", "thinking_budget_tokens"}) {
    VEDETTE_RETURN_IF_ERROR(fields.store(name, sampling_ranges::kCountOrAll, job.thinking_budget));
  }
  return ok_status();
}

Status read_priority(const Fields& fields, const DialectContext& context, GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(auto priority, fields.integer("priority", -1000, 1000));
  if (priority) job.priority = static_cast<int>(*priority);
  const std::string* header = context.request.header("x-priority");
  if (header == nullptr) return ok_status();
  const bool number = !header->empty() && header->size() < 6 &&
                      header->find_first_not_of("0123456789", header->front() == '-' ? 1 : 0) == std::string::npos &&
                      *header != "-";
  if (*header == "high")
    job.priority = 10;
  else if (*header == "low")
    job.priority = -10;
  else if (*header == "normal")
    job.priority = 0;
  else if (number)
    job.priority = std::clamp(std::stoi(*header), -1000, 1000);
  else
    return invalid_request("X-Priority", "X-Priority: expected high, normal, low or an integer, found '{}'",
                           header->substr(0, 40));
  return ok_status();
}

}  // namespace

Status read_sampling_fields(const Json& body, const DialectContext& context, GenerateJob& job) {
  const Fields fields(body);
  SamplingParams& params = job.sampling;
  for (const sampling::Parameter& parameter : sampling::parameters())
    for (const std::string_view name : parameter.names)
      VEDETTE_RETURN_IF_ERROR(std::visit(
          [&](auto member) { return fields.store(name, parameter.range, params.*member); }, parameter.member));
  VEDETTE_ASSIGN_OR_RETURN(auto p_less, fields.boolean("p_less"));
  if (p_less) params.p_less = *p_less;
  VEDETTE_ASSIGN_OR_RETURN(auto order, fields.strings("samplers", 32));
  if (order) params.order = std::move(*order);
  VEDETTE_ASSIGN_OR_RETURN(auto breakers, fields.strings("dry_sequence_breakers", 64));
  if (breakers) job.dry_breakers = std::move(*breakers);
  VEDETTE_RETURN_IF_ERROR(read_seed(fields, params));
  VEDETTE_RETURN_IF_ERROR(read_logit_bias(fields, context, params));
  VEDETTE_ASSIGN_OR_RETURN(auto languages, read_language_bias(fields, "language_bias"));
  if (languages) job.language_bias = std::move(*languages);
  VEDETTE_RETURN_IF_ERROR(read_stops(fields, job));
  VEDETTE_RETURN_IF_ERROR(read_loop(fields, job));
  VEDETTE_RETURN_IF_ERROR(read_budget(fields, job));
  VEDETTE_RETURN_IF_ERROR(read_priority(fields, context, job));
  VEDETTE_ASSIGN_OR_RETURN(auto ignore_eos, fields.boolean("ignore_eos"));
  if (ignore_eos) job.ignore_eos = *ignore_eos;
  VEDETTE_ASSIGN_OR_RETURN(auto cache_prompt, fields.boolean("cache_prompt"));
  if (cache_prompt) job.cache_prompt = *cache_prompt;
  // A routing hint elsewhere; here every conversation finds its own prefix.
  VEDETTE_RETURN_IF_ERROR(fields.string("prompt_cache_key"));
  return sampling::validate(params);
}

std::span<const std::string_view> sampling_field_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out(std::begin(kOthers), std::end(kOthers));
    for (const sampling::Parameter& parameter : sampling::parameters())
      out.insert(out.end(), parameter.names.begin(), parameter.names.end());
    return out;
  }();
  return names;
}

void note_unknown_fields(const Json& body, std::span<const std::string_view> known, GenerateJob& job) {
  const auto listed = [](std::span<const std::string_view> names, std::string_view key) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  constexpr size_t kMostNoted = 32;
  for (const auto& [key, value] : body.as_object()) {
    if (job.ignored_fields.size() == kMostNoted) return;
    if (!listed(known, key) && !listed(sampling_field_names(), key)) job.ignored_fields.push_back(key.substr(0, 80));
  }
}

}  // namespace vedette::server
