// logit = (logit - best) / T: the draw sees differences only, and nothing overflows however small T is.
#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class Temperature final : public Sampler {
 public:
  explicit Temperature(double temperature) : temperature_(temperature) {}
  const char* name() const override { return "temperature"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const float best = max_logit(candidates);
    if (best == kMinusInfinity) return;
    for (Candidate& candidate : candidates)
      candidate.logit = static_cast<float>((static_cast<double>(candidate.logit) - best) / temperature_);
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Temperature>(*this); }

 private:
  double temperature_;
};

}  // namespace

std::unique_ptr<Sampler> make_temperature(const SamplingParams& params, int64_t) {
  if (params.temperature == 1) return nullptr;
  return std::make_unique<Temperature>(params.temperature);
}

}  // namespace vedette::sampling
