// logit = (logit - best) / T: the draw sees differences only, and nothing overflows however small T is.
// Dynamic temperature: T = low + (high - low) * (H / log n)^exponent, with H the entropy of the n candidates,
// low = max(0, temperature - range) and high = temperature + range.
#include <algorithm>

#include "sampling/links.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

// A temperature of 0 leaves the best alone, the lowest id among equals.
void scale(std::vector<Candidate>& candidates, double temperature) {
  const float best = max_logit(candidates);
  if (best == kMinusInfinity) return;
  bool found = false;
  for (Candidate& candidate : candidates) {
    if (temperature > 0) {
      const double scaled = (static_cast<double>(candidate.logit) - best) / temperature;
      candidate.logit = scaled < std::numeric_limits<float>::lowest() ? kMinusInfinity : static_cast<float>(scaled);
    } else {
      const bool first = candidate.logit == best && !found;
      found = found || first;
      candidate.logit = first ? 0 : kMinusInfinity;
    }
  }
}

class Temperature final : public Sampler {
 public:
  explicit Temperature(double temperature) : temperature_(temperature) {}
  const char* name() const override { return "temperature"; }
  void apply(std::vector<Candidate>& candidates, const History&) override { scale(candidates, temperature_); }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Temperature>(*this); }

 private:
  double temperature_;
};

class DynamicTemperature final : public Sampler {
 public:
  DynamicTemperature(double temperature, double range, double exponent)
      : low_(std::max(0.0, temperature - range)), high_(temperature + range), exponent_(exponent) {}
  const char* name() const override { return "temperature"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    if (candidates.size() <= 1) return;
    const SoftmaxSums sums = softmax_sums(candidates);
    if (sums.best == kMinusInfinity) return;
    const double entropy = portable_log(sums.sum) + sums.distance / sums.sum;
    const double share = std::clamp(entropy / portable_log(static_cast<double>(candidates.size())), 0.0, 1.0);
    scale(candidates, low_ + (high_ - low_) * power(share));
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<DynamicTemperature>(*this); }

 private:
  double power(double share) const {
    if (exponent_ == 0) return 1;
    return share < 1e-300 ? 0 : precise_exp(exponent_ * portable_log(share));
  }

  double low_, high_, exponent_;
};

}  // namespace

std::unique_ptr<Sampler> make_temperature(const SamplingParams& params, int64_t) {
  if (params.dynatemp_range > 0)
    return std::make_unique<DynamicTemperature>(params.temperature, params.dynatemp_range, params.dynatemp_exponent);
  if (params.temperature == 1) return nullptr;
  return std::make_unique<Temperature>(params.temperature);
}

}  // namespace vedette::sampling
