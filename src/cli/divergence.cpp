#include "cli/divergence.h"

#include <algorithm>
#include <cmath>

namespace vedette::cli {

void log_softmax(std::span<const float> logits, std::vector<double>& out) {
  out.assign(logits.begin(), logits.end());
  const double largest = *std::ranges::max_element(out);
  double sum = 0;
  for (double value : out) sum += std::exp(value - largest);
  const double offset = largest + std::log(sum);
  for (double& value : out) value -= offset;
}

void Perplexity::add(const std::vector<double>& log_probabilities, int32_t next_token) {
  loss_ -= log_probabilities[static_cast<size_t>(next_token)];
  ++count_;
}

double Perplexity::mean_loss() const {
  return count_ > 0 ? loss_ / static_cast<double>(count_) : 0;
}
double Perplexity::value() const {
  return std::exp(mean_loss());
}

void Divergence::add(std::span<const float> base_logits, const std::vector<double>& base,
                     const std::vector<double>& test) {
  double divergence = 0;
  size_t base_top = 0, test_top = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    if (base[i] > base[base_top]) base_top = i;
    if (test[i] > test[test_top]) test_top = i;
    divergence += std::exp(base[i]) * (base[i] - test[i]);
  }
  sum_ += divergence;
  sum_of_squares_ += divergence * divergence;
  maximum_ = std::max(maximum_, divergence);
  ++count_;
  if (base_top == test_top)
    ++same_top_;
  else
    margin_ = std::max(margin_, static_cast<double>(base_logits[base_top]) - base_logits[test_top]);
}

double Divergence::mean() const {
  return count_ > 0 ? sum_ / static_cast<double>(count_) : 0;
}
double Divergence::standard_error() const {
  if (count_ < 2) return 0;
  const double n = static_cast<double>(count_);
  const double variance = std::max(0.0, (sum_of_squares_ - sum_ * sum_ / n) / (n - 1));
  return std::sqrt(variance / n);
}

double Divergence::same_top_fraction() const {
  return count_ > 0 ? static_cast<double>(same_top_) / static_cast<double>(count_) : 0;
}

}  // namespace vedette::cli
