// Perplexity and Kullback-Leibler divergence of next-token distributions, from logits. Sums in float64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vedette::cli {

// log softmax, float64 [vocab].
void log_softmax(std::span<const float> logits, std::vector<double>& out);

// Scores of the model under test over all positions seen.
class Perplexity {
 public:
  void add(const std::vector<double>& log_probabilities, int32_t next_token);
  int64_t count() const { return count_; }
  double mean_loss() const;  // nats per token
  double value() const;      // exp(mean loss)

 private:
  int64_t count_ = 0;
  double loss_ = 0;
};

// KL(base || test) = sum p_base (log p_base - log p_test), position by position.
class Divergence {
 public:
  void add(std::span<const float> base_logits, const std::vector<double>& base, const std::vector<double>& test);
  int64_t count() const { return count_; }
  double mean() const;
  double standard_error() const;  // of the mean
  double maximum() const { return maximum_; }
  double same_top_fraction() const;
  int64_t differing_tops() const { return count_ - same_top_; }
  // Over the positions whose likeliest tokens differ: the largest difference of the base's logits between its own
  // choice and the other's.
  double largest_margin() const { return margin_; }

 private:
  int64_t count_ = 0, same_top_ = 0;
  double sum_ = 0, sum_of_squares_ = 0, maximum_ = 0, margin_ = 0;
};

}  // namespace vedette::cli
