// Locally typical sampling (Meister, Pimentel, Wiher, Cotterell 2023): keeps the candidates whose surprise -log p lies
// nearest to the entropy H, up to the one with which their mass exceeds p.
#include <cmath>

#include "sampling/links.h"
#include "sampling/mass_cut.h"

namespace vedette::sampling {
namespace {

class TypicalP final : public Sampler {
 public:
  TypicalP(double p, int64_t vocab_size) : p_(p), cut_(static_cast<size_t>(vocab_size)) {}
  const char* name() const override { return "typ_p"; }

  // -log p = (best - logit) + log sum and H = log sum + distance / sum: the logarithm cancels.
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const SoftmaxSums sums = softmax_sums(candidates);
    if (sums.best == kMinusInfinity) return;
    const float best = sums.best, typical = static_cast<float>(sums.distance / sums.sum);
    cut_.keep(candidates, best, p_, MassCut::Stop::kExceeded,
              [best, typical](float logit) { return std::abs(best - logit - typical); });
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<TypicalP>(*this); }

 private:
  double p_;
  MassCut cut_;
};

}  // namespace

std::unique_ptr<Sampler> make_typ_p(const SamplingParams& params, int64_t vocab_size) {
  if (params.typical_p >= 1) return nullptr;
  return std::make_unique<TypicalP>(params.typical_p, vocab_size);
}

}  // namespace vedette::sampling
