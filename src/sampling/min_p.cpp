// Keeps candidates at least min_p times as probable as the best: logit >= best + log min_p.
#include "sampling/links.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class MinP final : public Sampler {
 public:
  explicit MinP(double min_p) : log_min_p_(portable_log(min_p)) {}
  const char* name() const override { return "min_p"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const double floor = max_logit(candidates) + log_min_p_;
    std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.logit < floor; });
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<MinP>(*this); }

 private:
  double log_min_p_;
};

}  // namespace

std::unique_ptr<Sampler> make_min_p(const SamplingParams& params, int64_t) {
  if (params.min_p < 1e-300) return nullptr;  // 0, or so small that its logarithm is no use
  return std::make_unique<MinP>(params.min_p);
}

}  // namespace vedette::sampling
