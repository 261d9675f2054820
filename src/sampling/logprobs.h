// Log-probabilities of a row: the log-softmax of its raw logits, before biases, penalties and temperature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vedette::sampling {

struct TokenLogprob {
  int32_t id;
  float logprob;  // -infinity where the logit is -infinity or no number
};

inline constexpr int64_t kMaxTopLogprobs = 100;

// The log-probability of `chosen` (-infinity for an id outside the row); `top` gets the `top_n` (at most
// kMaxTopLogprobs) most probable tokens, best first, lower ids first among equals. The same bits everywhere; nothing is
// allocated where `top` comes from a call before.
float token_logprobs(std::span<const float> logits, int32_t chosen, int64_t top_n, std::vector<TokenLogprob>& top);

}  // namespace vedette::sampling
