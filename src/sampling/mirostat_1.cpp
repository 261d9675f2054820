// Mirostat (Basu, Ramachandran, Keskar, Varshney 2021): keeps the k best candidates, k from the slope s of their Zipf
// law and the surprise mu wanted next. With N the vocabulary and e = s - 1:
//   s = sum t b / sum t^2, t = log((i + 2) / (i + 1)), b = log(p_i / p_(i+1)), over the 100 most probable
//   k = (e 2^mu / (1 - N^-e))^(1/s)
// After a draw of surprise S = -log2 p (among those kept): mu -= eta (S - tau); mu starts at 2 tau.
#include <algorithm>
#include <cmath>

#include "sampling/best_of.h"
#include "sampling/feedback.h"
#include "sampling/links.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

constexpr size_t kSlopeCandidates = 100;
constexpr double kLog2 = 0.69314718055994531;

class Mirostat1 final : public Sampler {
 public:
  Mirostat1(double tau, double eta, int64_t vocab_size)
      : tau_(tau),
        eta_(eta),
        mu_(2 * tau),
        log_vocab_(portable_log(static_cast<double>(std::max<int64_t>(vocab_size, 2)))),
        scratch_(static_cast<size_t>(vocab_size) + 1),
        feedback_(static_cast<size_t>(vocab_size)) {}
  const char* name() const override { return "mirostat_1"; }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    if (const auto surprise = feedback_.chosen(history)) mu_ -= eta_ * (*surprise - tau_);
    if (max_logit(candidates) == kMinusInfinity) return;
    keep_best(candidates, wanted(candidates), scratch_);
    const SoftmaxSums sums = softmax_sums(candidates);
    const double log_sum = portable_log(sums.sum);
    feedback_.remember(history, candidates, [&](float logit) {
      return static_cast<float>((static_cast<double>(sums.best) - logit + log_sum) / kLog2);
    });
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Mirostat1>(*this); }

 private:
  // k. A row without a slope is flat: all or one.
  size_t wanted(const std::vector<Candidate>& candidates) {
    const double s = slope(candidates);
    const double log_power = mu_ * kLog2 + log_factor(s - 1);  // of k^s
    const double n = static_cast<double>(candidates.size());
    if (log_power <= 0) return 1;
    if (log_power >= s * portable_log(n)) return candidates.size();
    return static_cast<size_t>(std::max(precise_exp(log_power / s), 1.0));
  }

  double slope(const std::vector<Candidate>& candidates) {
    std::vector<Candidate>& best = scratch_.items;
    select_best(candidates.size(), std::min(kSlopeCandidates, candidates.size()), best,
                [&](size_t i) { return candidates[i]; });
    std::sort(best.begin(), best.end(), [](const Candidate& a, const Candidate& b) { return better(a, b); });
    double products = 0, squares = 0;
    for (size_t i = 0; i + 1 < best.size() && best[i + 1].logit > kMinusInfinity; ++i) {
      const double t = portable_log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      products += t * (static_cast<double>(best[i].logit) - best[i + 1].logit);
      squares += t * t;
    }
    return squares > 0 ? products / squares : 0;
  }

  // log(e / (1 - N^-e)), for either sign of e; 1 / log N where e is 0.
  double log_factor(double e) const {
    const double a = std::abs(e);
    if (a < 1e-6) return -portable_log(log_vocab_);
    const double power = precise_exp(-a * log_vocab_);
    return portable_log(a / (1 - power)) - (e < 0 ? a * log_vocab_ : 0);
  }

  double tau_, eta_, mu_, log_vocab_;
  Scratch<Candidate> scratch_;
  Feedback feedback_;
};

}  // namespace

std::unique_ptr<Sampler> make_mirostat_1(const SamplingParams& params, int64_t vocab_size) {
  if (params.mirostat != 1) return nullptr;
  return std::make_unique<Mirostat1>(params.mirostat_tau, params.mirostat_eta, vocab_size);
}

}  // namespace vedette::sampling
