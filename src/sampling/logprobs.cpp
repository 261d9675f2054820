#include "sampling/logprobs.h"

#include <algorithm>

#include "sampling/best_of.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
// Outside the unnamed namespace, for select_best finds it by its argument.
static float rank(const TokenLogprob& token) {
  return token.logprob;
}

namespace {

// log sum e^logit = best + log sum e^(logit - best); eight running sums in a fixed order.
struct Normalizer {
  float best = kMinusInfinity;
  double log_sum = 0;

  explicit Normalizer(std::span<const float> logits) {
    for (const float logit : logits) best = std::max(best, tame(logit));
    if (best == kMinusInfinity) return;
    double sums[8] = {};
    size_t i = 0;
    for (; i + 8 <= logits.size(); i += 8)
      for (size_t lane = 0; lane < 8; ++lane) sums[lane] += portable_exp(tame(logits[i + lane]) - best);
    for (; i < logits.size(); ++i) sums[0] += portable_exp(tame(logits[i]) - best);
    double sum = 0;
    for (const double lane : sums) sum += lane;
    log_sum = portable_log(sum);
  }

  float logprob(float logit) const {
    if (logit == kMinusInfinity) return kMinusInfinity;
    return static_cast<float>(static_cast<double>(logit) - best - log_sum);
  }
};

}  // namespace

float token_logprobs(std::span<const float> logits, int32_t chosen, int64_t top_n, std::vector<TokenLogprob>& top) {
  const Normalizer normalizer(logits);
  top.clear();
  const size_t wanted = static_cast<size_t>(std::clamp<int64_t>(top_n, 0, kMaxTopLogprobs));
  if (wanted > 0) {
    top.reserve(select_room(wanted, logits.size()));
    // Chosen by logit, which orders more finely than the rounded logarithm.
    select_best(logits.size(), wanted, top,
                [&](size_t i) { return TokenLogprob{static_cast<int32_t>(i), tame(logits[i])}; });
    std::sort(top.begin(), top.end(), [](const TokenLogprob& a, const TokenLogprob& b) { return better(a, b); });
    for (TokenLogprob& token : top) token.logprob = normalizer.logprob(token.logprob);
  }
  if (chosen < 0 || static_cast<size_t>(chosen) >= logits.size()) return kMinusInfinity;
  return normalizer.logprob(tame(logits[static_cast<size_t>(chosen)]));
}

}  // namespace vedette::sampling
