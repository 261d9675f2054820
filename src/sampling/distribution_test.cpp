// Chi-square tests of 100,000 draws per link against closed-form distributions. Seeds are fixed, so a test passes
// always or never; the critical values are the 99.9 % quantiles of the chi-square distribution.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "sampling/sampling.h"

namespace vedette::sampling {
namespace {

constexpr int kDraws = 100000;

// 99.9 % quantile for 1 to 12 degrees of freedom.
double critical(size_t degrees) {
  constexpr double kQuantiles[] = {0,      10.828, 13.816, 16.266, 18.467, 20.515, 22.458,
                                   24.322, 26.124, 27.877, 29.588, 31.264, 32.909};
  return kQuantiles[degrees];
}

// Expected probabilities by id; ids of probability 0 must never be drawn.
void expect_distribution(const SamplingParams& params, const std::vector<float>& logits,
                         const std::vector<double>& expected, std::vector<int32_t> history = {}) {
  SamplerChain chain(params, 20240229, static_cast<int64_t>(logits.size()));
  std::vector<int64_t> counts(logits.size(), 0);
  for (int64_t position = 0; position < kDraws; ++position) {
    auto token = chain.sample(logits, {history, static_cast<int64_t>(history.size())}, position);
    ASSERT_TRUE(token.ok());
    ++counts[static_cast<size_t>(*token)];
  }
  double total = 0, statistic = 0;
  for (const double weight : expected) total += weight;
  size_t cells = 0;
  for (size_t id = 0; id < expected.size(); ++id) {
    if (expected[id] == 0) {
      EXPECT_EQ(counts[id], 0) << "token " << id;
      continue;
    }
    const double mean = kDraws * expected[id] / total;
    statistic += (static_cast<double>(counts[id]) - mean) * (static_cast<double>(counts[id]) - mean) / mean;
    ++cells;
  }
  EXPECT_LT(statistic, critical(cells - 1));
}

std::vector<float> logs(const std::vector<double>& weights) {
  std::vector<float> logits;
  for (const double weight : weights) logits.push_back(static_cast<float>(std::log(weight)));
  return logits;
}

const std::vector<double> kWeights = {8, 1, 5, 2, 0.5, 13, 3, 0.25, 21};

TEST(Distribution, Plain) {
  expect_distribution({.temperature = 1}, logs(kWeights), kWeights);
}

TEST(Distribution, Temperature) {
  for (const double temperature : {0.5, 2.0}) {
    std::vector<double> expected;
    for (const double weight : kWeights) expected.push_back(std::pow(weight, 1 / temperature));
    expect_distribution({.temperature = temperature}, logs(kWeights), expected);
  }
}

TEST(Distribution, TopK) {
  expect_distribution({.temperature = 1, .top_k = 4}, logs(kWeights), {8, 0, 5, 0, 0, 13, 0, 0, 21});
}

// Sorted: 21 13 8 5 ... of 53.75; 21 + 13 = 34 < 0.7 * 53.75 = 37.6 <= 42.
TEST(Distribution, TopP) {
  expect_distribution({.temperature = 1, .top_p = 0.7}, logs(kWeights), {8, 0, 0, 0, 0, 13, 0, 0, 21});
}

TEST(Distribution, MinP) {
  expect_distribution({.temperature = 1, .min_p = 0.2}, logs(kWeights), {8, 0, 5, 0, 0, 13, 0, 0, 21});
}

// Filters look at the untempered distribution, temperature reshapes what they kept.
TEST(Distribution, WholeChain) {
  std::vector<double> expected = {8, 0, 0, 0, 0, 13, 0, 0, 21};
  for (double& weight : expected) weight = weight > 0 ? std::pow(weight, 1 / 1.5) : 0;
  expect_distribution({.temperature = 1.5, .top_k = 6, .top_p = 0.75, .min_p = 0.3}, logs(kWeights), expected);
}

TEST(Distribution, LogitBias) {
  std::vector<double> expected = kWeights;
  expected[0] *= std::exp(-1.0);
  expected[3] *= std::exp(2.0);
  expected[8] = 0;
  expect_distribution({.temperature = 1, .logit_bias = {{0, -1.f}, {3, 2.f}, {8, -INFINITY}}}, logs(kWeights),
                      expected);
}

TEST(Distribution, FrequencyAndPresence) {
  std::vector<double> expected = kWeights;
  expected[8] *= std::exp(-(0.5 * 3 + 0.25));
  expected[0] *= std::exp(-(0.5 * 1 + 0.25));
  expect_distribution({.temperature = 1, .frequency_penalty = 0.5, .presence_penalty = 0.25}, logs(kWeights), expected,
                      {8, 8, 0, 8});
}

TEST(Distribution, Repetition) {
  std::vector<double> expected = kWeights;
  expected[8] = std::exp(std::log(21.0) / 1.5);  // positive logit: divided
  expected[4] = std::exp(std::log(0.5) * 1.5);   // negative logit: multiplied
  expect_distribution({.temperature = 1, .repetition_penalty = 1.5}, logs(kWeights), expected, {8, 4});
}

// Two positions of one seed are independent: their pairs fill the product distribution.
TEST(Distribution, PositionsAreIndependent) {
  const std::vector<double> weights = {1, 2, 1};
  const std::vector<float> logits = logs(weights);
  SamplerChain chain({.temperature = 1}, 77, 3);
  std::map<std::pair<int, int>, int> pairs;
  for (int64_t i = 0; i < kDraws; ++i) {
    const int first = *chain.sample(logits, {}, 2 * i);
    const int second = *chain.sample(logits, {}, 2 * i + 1);
    ++pairs[{first, second}];
  }
  double statistic = 0;
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      const double mean = kDraws * weights[static_cast<size_t>(a)] * weights[static_cast<size_t>(b)] / 16;
      statistic += (pairs[{a, b}] - mean) * (pairs[{a, b}] - mean) / mean;
    }
  EXPECT_LT(statistic, critical(8));
}

}  // namespace
}  // namespace vedette::sampling
