// Log probabilities of tokens: log-softmax of raw logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vedette::sampling {

struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0;
  bool operator==(const TokenLogprob&) const = default;
};

// The most alternatives that may be asked for.
inline constexpr int kMaxLogprobs = 100;

// The log probability of `chosen` and the `n` best tokens, best first, ties to lower ids (out is re-used). NaN counts
// as -infinity. Deterministic arithmetic, the same bits on every machine.
float token_logprobs(std::span<const float> logits, int32_t chosen, int n, std::vector<TokenLogprob>& out);

}  // namespace vedette::sampling
