// p-less sampling (Tan, Wu, Howard 2025): keeps candidates with p >= sum p^2, p at the request's temperature. With
// w = e^((logit - best) / T) that is w >= sum w^2 / sum w, which the best (w = 1) always fulfils.
#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class PLess final : public Sampler {
 public:
  explicit PLess(double temperature) : temperature_(temperature) {}
  const char* name() const override { return "p_less"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const float best = max_logit(candidates);
    if (best == kMinusInfinity) return;
    const auto weight = [&](const Candidate& candidate) {
      const double scaled = (static_cast<double>(candidate.logit) - best) / temperature_;
      return portable_exp(static_cast<float>(std::max(scaled, -100.0)));
    };
    double sum = 0, squares = 0;
    for (const Candidate& candidate : candidates) {
      const double w = weight(candidate);
      sum += w;
      squares += w * w;
    }
    const double floor = std::min(squares / sum, 1.0);
    std::erase_if(candidates, [&](const Candidate& candidate) { return weight(candidate) < floor; });
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<PLess>(*this); }

 private:
  double temperature_;
};

}  // namespace

std::unique_ptr<Sampler> make_p_less(const SamplingParams& params, int64_t) {
  if (!params.p_less) return nullptr;
  return std::make_unique<PLess>(params.temperature);
}

}  // namespace vedette::sampling
