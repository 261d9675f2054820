// Mirostat 2.0: keeps the candidates of surprise -log2 p <= mu, at least the best.
#include "sampling/links.h"
#include "sampling/mirostat.h"

namespace vedette::sampling {
namespace {

class Mirostat2 final : public Sampler {
 public:
  Mirostat2(double tau, double eta, int64_t vocab_size) : surprise_(tau, eta, static_cast<size_t>(vocab_size)) {}
  const char* name() const override { return "mirostat_2"; }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    const double mu = surprise_.wanted(history);
    const SoftmaxSums sums = softmax_sums(candidates);
    if (sums.best == kMinusInfinity) return;
    const double floor = sums.best + portable_log(sums.sum) - mu;  // the logit of surprise mu
    bool found = false;
    std::erase_if(candidates, [&](const Candidate& candidate) {
      const bool first = candidate.logit == sums.best && !found;
      found = found || first;
      return candidate.logit < floor && !first;
    });
    surprise_.remember(history, candidates);
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Mirostat2>(*this); }

 private:
  Surprise surprise_;
};

}  // namespace

std::unique_ptr<Sampler> make_mirostat_2(const SamplingParams& params, int64_t vocab_size) {
  if (params.mirostat != 2) return nullptr;
  return std::make_unique<Mirostat2>(params.mirostat_tau, params.mirostat_eta, vocab_size);
}

}  // namespace vedette::sampling
