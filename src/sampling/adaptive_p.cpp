// Adaptive-p: draws tokens near a target probability. An average of the drawn tokens' own probabilities, each weighing
// `decay` of the next, steers the target of the next draw: t = clamp(2 target - average, 0, 1); the average starts at
// the target with the weight of an endless past. With d = |p - t| / 0.3:
//   logit = 5 - 10 d^2 / (1 + d)
#include <algorithm>
#include <cmath>

#include "sampling/feedback.h"
#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class AdaptiveP final : public Sampler {
 public:
  AdaptiveP(double target, double decay, int64_t vocab_size)
      : target_(target),
        decay_(decay),
        sum_(target / (1 - decay)),
        weight_(1 / (1 - decay)),
        feedback_(static_cast<size_t>(vocab_size)) {}
  const char* name() const override { return "adaptive_p"; }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    if (const auto probability = feedback_.chosen(history)) {
      sum_ = *probability + decay_ * sum_;
      weight_ = 1 + decay_ * weight_;
    }
    const SoftmaxSums sums = softmax_sums(candidates);
    if (sums.best == kMinusInfinity) return;
    const auto probability = [&](float logit) {
      return static_cast<float>(portable_exp(logit - sums.best) / sums.sum);
    };
    feedback_.remember(history, candidates, probability);
    const double target = std::clamp(2 * target_ - sum_ / weight_, 0.0, 1.0);
    for (Candidate& candidate : candidates) {
      if (candidate.logit == kMinusInfinity) continue;
      const double d = std::abs(probability(candidate.logit) - target) / 0.3;
      candidate.logit = static_cast<float>(5 - 10 * d * d / (1 + d));
    }
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<AdaptiveP>(*this); }

 private:
  double target_, decay_;
  double sum_, weight_;  // of the drawn tokens' probabilities
  Feedback feedback_;
};

}  // namespace

std::unique_ptr<Sampler> make_adaptive_p(const SamplingParams& params, int64_t vocab_size) {
  if (params.adaptive_target < 0) return nullptr;
  return std::make_unique<AdaptiveP>(params.adaptive_target, params.adaptive_decay, vocab_size);
}

}  // namespace vedette::sampling
