// Ranges of the sampling parameters.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "sampling/links.h"

namespace vedette::sampling {
namespace {

struct Range {
  const char* field;
  double value;
  double min;
  double max;
};

Status check(const Range& range) {
  if (range.value >= range.min && range.value <= range.max) return ok_status();  // false for NaN
  return invalid_request(range.field, "{} is {}, must be a number from {} to {}", range.field, range.value, range.min,
                         range.max);
}

// A name of the caller's for a message: one short line of plain text.
std::string shown(std::string_view name) {
  constexpr size_t kLongest = 40;
  std::string text;
  for (const char c : name.substr(0, kLongest)) text += c >= ' ' && c <= '~' ? c : '?';
  return "'" + text + (name.size() > kLongest ? "...'" : "'");
}

Status check_count(const char* field, int64_t value, int64_t min) {
  if (value >= min) return ok_status();
  return invalid_request(field, "{} is {}, must be an integer of at least {}", field, value, min);
}

bool is_bias(float bias) {
  return bias < std::numeric_limits<float>::infinity();  // false for NaN
}

Status check_biases(const SamplingParams& params) {
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0) return invalid_request("logit_bias", "logit_bias: token id {} must not be negative", id);
    if (!is_bias(bias))
      return invalid_request("logit_bias", "logit_bias of token {} is {}, must be a finite number or -infinity", id,
                             bias);
  }
  if (!params.bias_table) return ok_status();
  for (size_t id = 0; id < params.bias_table->size(); ++id)
    if (!is_bias((*params.bias_table)[id]))
      return invalid_request("language_bias", "language_bias of token {} is {}, must be a finite number or -infinity",
                             id, (*params.bias_table)[id]);
  return ok_status();
}

Status check_order(const std::vector<std::string>& order) {
  std::vector<const Link*> seen;
  for (size_t i = 0; i < order.size(); ++i) {
    const Link* link = find_link(order[i]);
    if (link == nullptr)
      return invalid_request("samplers", "samplers names {} as number {}, must be of: {}", shown(order[i]), i + 1,
                             known_links());
    if (std::find(seen.begin(), seen.end(), link) != seen.end())
      return invalid_request("samplers", "samplers names '{}' twice, as number {}", link->name, i + 1);
    seen.push_back(link);
  }
  return ok_status();
}

}  // namespace

Status validate(const SamplingParams& params) {
  const Range ranges[] = {
      {"temperature", params.temperature, 0, 100},
      {"top_p", params.top_p, 0, 1},
      {"min_p", params.min_p, 0, 1},
      {"typical_p", params.typical_p, 0, 1},
      {"top_n_sigma", params.top_n_sigma, -1, 100},
      {"xtc_probability", params.xtc_probability, 0, 1},
      {"xtc_threshold", params.xtc_threshold, 0, 1},
      {"dynatemp_range", params.dynatemp_range, 0, 100},
      {"dynatemp_exponent", params.dynatemp_exponent, 0, 100},
      {"repetition_penalty", params.repetition_penalty, 0.01, 100},
      {"frequency_penalty", params.frequency_penalty, -100, 100},
      {"presence_penalty", params.presence_penalty, -100, 100},
      {"dry_multiplier", params.dry_multiplier, 0, 100},
      {"dry_base", params.dry_base, 1, 100},
      {"mirostat_tau", params.mirostat_tau, 0, 100},
      {"mirostat_eta", params.mirostat_eta, 0, 10},
      {"adaptive_target", params.adaptive_target, -1, 1},
      {"adaptive_decay", params.adaptive_decay, 0, 0.99},
  };
  for (const Range& range : ranges) VEDETTE_RETURN_IF_ERROR(check(range));
  VEDETTE_RETURN_IF_ERROR(check_count("top_k", params.top_k, 0));
  VEDETTE_RETURN_IF_ERROR(check_count("repeat_last_n", params.repeat_last_n, -1));
  VEDETTE_RETURN_IF_ERROR(check_count("dry_allowed_length", params.dry_allowed_length, 0));
  VEDETTE_RETURN_IF_ERROR(check_count("dry_penalty_last_n", params.dry_penalty_last_n, -1));
  if (params.mirostat < 0 || params.mirostat > 2)
    return invalid_request("mirostat", "mirostat is {}, must be 0, 1 or 2", params.mirostat);
  VEDETTE_RETURN_IF_ERROR(check_biases(params));
  return check_order(params.order);
}

}  // namespace vedette::sampling
