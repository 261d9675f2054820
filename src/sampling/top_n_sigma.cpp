// Bans candidates more than n standard deviations below the best: logit < best - n * sigma. Mean and deviation are
// those of the population of logits above -infinity. A banned candidate still counts as one in the links that follow.
#include <cmath>

#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class TopNSigma final : public Sampler {
 public:
  explicit TopNSigma(double n) : n_(n) {}
  const char* name() const override { return "top_n_sigma"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const float best = max_logit(candidates);
    if (best == kMinusInfinity) return;
    double below = 0, count = 0;  // of best - logit
    for (const Candidate& candidate : candidates) {
      if (candidate.logit == kMinusInfinity) continue;
      below += static_cast<double>(best) - candidate.logit;
      ++count;
    }
    const double mean = below / count;
    double squares = 0;
    for (const Candidate& candidate : candidates) {
      if (candidate.logit == kMinusInfinity) continue;
      const double deviation = static_cast<double>(best) - candidate.logit - mean;
      squares += deviation * deviation;
    }
    const double floor = best - n_ * std::sqrt(squares / count);
    for (Candidate& candidate : candidates)
      if (candidate.logit < floor) candidate.logit = kMinusInfinity;
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<TopNSigma>(*this); }

 private:
  double n_;
};

}  // namespace

std::unique_ptr<Sampler> make_top_n_sigma(const SamplingParams& params, int64_t) {
  if (params.top_n_sigma <= 0) return nullptr;
  return std::make_unique<TopNSigma>(params.top_n_sigma);
}

}  // namespace vedette::sampling
