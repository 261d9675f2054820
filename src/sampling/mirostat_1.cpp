// Mirostat: keeps the k best candidates, k from the slope s of their Zipf
// law and the surprise mu wanted next, in bits. With N the vocabulary and e = s - 1:
//   s = sum t b / sum t^2, t = log((i + 2) / (i + 1)), b = log(p_i / p_(i+1)), over the 100 most probable
//   k = (e 2^mu / (1 - N^-e))^(1/s)
#include <algorithm>
#include <cmath>

#include "sampling/best_of.h"
#include "sampling/links.h"
#include "sampling/mirostat.h"

namespace vedette::sampling {
namespace {

constexpr size_t kSlopeCandidates = 100;

class Mirostat1 final : public Sampler {
 public:
  Mirostat1(double tau, double eta, int64_t vocab_size)
      : log_vocab_(portable_log(static_cast<double>(std::max<int64_t>(vocab_size, 2)))),
        scratch_(static_cast<size_t>(vocab_size) + 1),
        surprise_(tau, eta, static_cast<size_t>(vocab_size)) {}
  const char* name() const override { return "mirostat_1"; }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    const double mu = surprise_.wanted(history);
    if (max_logit(candidates) == kMinusInfinity) return;
    keep_best(candidates, count(candidates, mu), scratch_);
    surprise_.remember(history, candidates);
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Mirostat1>(*this); }

 private:
  // k. A row without a slope is flat: all or one.
  size_t count(const std::vector<Candidate>& candidates, double mu) {
    const double s = slope(candidates);
    const double log_power = mu + log_factor(s - 1);  // of k^s
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

  double log_vocab_;
  Scratch<Candidate> scratch_;
  Surprise surprise_;
};

}  // namespace

std::unique_ptr<Sampler> make_mirostat_1(const SamplingParams& params, int64_t vocab_size) {
  if (params.mirostat != 1) return nullptr;
  return std::make_unique<Mirostat1>(params.mirostat_tau, params.mirostat_eta, vocab_size);
}

}  // namespace vedette::sampling
