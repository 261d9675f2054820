// Mirostat 2.0 (Basu, Ramachandran, Keskar, Varshney 2021): keeps the candidates of surprise -log2 p <= mu, at least
// the best. After a draw of surprise S (among those kept): mu -= eta (S - tau); mu starts at 2 tau.
#include "sampling/feedback.h"
#include "sampling/links.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

constexpr double kLog2 = 0.69314718055994531;

class Mirostat2 final : public Sampler {
 public:
  Mirostat2(double tau, double eta, int64_t vocab_size)
      : tau_(tau), eta_(eta), mu_(2 * tau), feedback_(static_cast<size_t>(vocab_size)) {}
  const char* name() const override { return "mirostat_2"; }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    if (const auto surprise = feedback_.chosen(history)) mu_ -= eta_ * (*surprise - tau_);
    const SoftmaxSums sums = softmax_sums(candidates);
    if (sums.best == kMinusInfinity) return;
    const double floor = sums.best + portable_log(sums.sum) - mu_ * kLog2;  // the logit of surprise mu
    bool found = false;
    std::erase_if(candidates, [&](const Candidate& candidate) {
      const bool first = candidate.logit == sums.best && !found;
      found = found || first;
      return candidate.logit < floor && !first;
    });
    const SoftmaxSums kept = softmax_sums(candidates);
    const double log_sum = portable_log(kept.sum);
    feedback_.remember(history, candidates, [&](float logit) {
      return static_cast<float>((static_cast<double>(kept.best) - logit + log_sum) / kLog2);
    });
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Mirostat2>(*this); }

 private:
  double tau_, eta_, mu_;
  Feedback feedback_;
};

}  // namespace

std::unique_ptr<Sampler> make_mirostat_2(const SamplingParams& params, int64_t vocab_size) {
  if (params.mirostat != 2) return nullptr;
  return std::make_unique<Mirostat2>(params.mirostat_tau, params.mirostat_eta, vocab_size);
}

}  // namespace vedette::sampling
