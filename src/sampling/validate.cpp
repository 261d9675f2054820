// Ranges of the sampling parameters.
#include <cmath>

#include "base/error.h"
#include "sampling/sampling.h"

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

Status check_count(const char* field, int64_t value, int64_t min) {
  if (value >= min) return ok_status();
  return invalid_request(field, "{} is {}, must be an integer of at least {}", field, value, min);
}

}  // namespace

Status validate(const SamplingParams& params) {
  const Range ranges[] = {
      {"temperature", params.temperature, 0, 100},
      {"top_p", params.top_p, 0, 1},
      {"min_p", params.min_p, 0, 1},
      {"repetition_penalty", params.repetition_penalty, 0.01, 100},
      {"frequency_penalty", params.frequency_penalty, -100, 100},
      {"presence_penalty", params.presence_penalty, -100, 100},
  };
  for (const Range& range : ranges) VEDETTE_RETURN_IF_ERROR(check(range));
  VEDETTE_RETURN_IF_ERROR(check_count("top_k", params.top_k, 0));
  VEDETTE_RETURN_IF_ERROR(check_count("repeat_last_n", params.repeat_last_n, -1));
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0) return invalid_request("logit_bias", "logit_bias: token id {} must not be negative", id);
    if (std::isnan(bias) || bias == INFINITY)
      return invalid_request("logit_bias", "logit_bias of token {} is {}, must be a finite number or -infinity", id,
                             bias);
  }
  return ok_status();
}

}  // namespace vedette::sampling
