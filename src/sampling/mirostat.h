// What both mirostats share (Basu, Ramachandran, Keskar, Varshney 2021): the surprise mu wanted next. It starts at
// 2 tau; after a draw of surprise S = -log2 p, p among the candidates kept, mu -= eta (S - tau).
#pragma once

#include <algorithm>

#include "sampling/feedback.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {

// Owned by a link and copied with it.
class Surprise {
 public:
  Surprise(double tau, double eta, size_t vocab_size) : tau_(tau), eta_(eta), mu_(2 * tau), feedback_(vocab_size) {}

  // mu in nats, with what the history has to tell.
  double wanted(const History& history) {
    if (const auto surprise = feedback_.chosen(history)) mu_ -= eta_ * (*surprise - tau_);
    return mu_ * kLog2;
  }

  void remember(const History& history, const std::vector<Candidate>& kept) {
    const SoftmaxSums sums = softmax_sums(kept);
    const double log_sum = portable_log(sums.sum);
    feedback_.remember(history, kept, [&](float logit) {
      const double bits = (static_cast<double>(sums.best) - logit + log_sum) / kLog2;
      return static_cast<float>(std::min(bits, kMostBits));
    });
  }

 private:
  static constexpr double kLog2 = 0.69314718055994531;
  // Beyond, a token is never drawn, only forced; it must not carry mu away.
  static constexpr double kMostBits = 128;

  double tau_, eta_, mu_;
  Feedback feedback_;
};

}  // namespace vedette::sampling
