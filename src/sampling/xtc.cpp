// XTC, "exclude top choices": with the given probability, of the candidates at least as probable as the threshold all
// but the least probable go. The coin is noise of its own, keyed by the position.
#include "sampling/links.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class Xtc final : public Sampler {
 public:
  Xtc(double probability, double threshold, const NoiseKey& key)
      : probability_(probability), threshold_(threshold), key_(key) {}
  const char* name() const override { return "xtc"; }
  void apply(std::vector<Candidate>& candidates, const History& history) override {
    if (uniform(noise_block(key_, history.position, 0)[0]) > probability_) return;
    const SoftmaxSums sums = softmax_sums(candidates);
    if (sums.best == kMinusInfinity) return;
    const double floor = threshold_ * sums.sum;
    Candidate least{-1, 0};
    for (const Candidate& candidate : candidates) {
      if (candidate.logit == kMinusInfinity || portable_exp(candidate.logit - sums.best) < floor) continue;
      if (least.id < 0 || better(least, candidate)) least = candidate;
    }
    if (least.id < 0) return;
    std::erase_if(candidates, [&](const Candidate& candidate) { return better(candidate, least); });
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Xtc>(*this); }

 private:
  double probability_, threshold_;
  NoiseKey key_;
};

}  // namespace

std::unique_ptr<Sampler> make_xtc(const SamplingParams& params, int64_t) {
  // Above one half no two candidates can reach the threshold.
  if (params.xtc_probability <= 0 || params.xtc_threshold > 0.5) return nullptr;
  return std::make_unique<Xtc>(params.xtc_probability, params.xtc_threshold,
                               NoiseKey{params.seed.value_or(0), params.choice, Purpose::kXtc});
}

}  // namespace vedette::sampling
