// Keeps the smallest set of most probable candidates whose mass reaches p. Ties go to lower ids.
#include "sampling/links.h"
#include "sampling/mass_cut.h"

namespace vedette::sampling {
namespace {

class TopP final : public Sampler {
 public:
  TopP(double p, int64_t vocab_size) : p_(p), cut_(static_cast<size_t>(vocab_size)) {}
  const char* name() const override { return "top_p"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const float best = max_logit(candidates);
    if (best == kMinusInfinity) return;
    cut_.keep(candidates, best, p_, MassCut::Stop::kReached, [best](float logit) { return best - logit; });
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<TopP>(*this); }

 private:
  double p_;
  MassCut cut_;
};

}  // namespace

std::unique_ptr<Sampler> make_top_p(const SamplingParams& params, int64_t vocab_size) {
  if (params.top_p >= 1) return nullptr;
  return std::make_unique<TopP>(params.top_p, vocab_size);
}

}  // namespace vedette::sampling
