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
                         const std::vector<double>& expected, std::vector<int32_t> history = {},
                         std::vector<uint32_t> allowed = {}) {
  ASSERT_TRUE(validate(params).ok());
  SamplerChain chain(params, 20240229, static_cast<int64_t>(logits.size()));
  std::vector<int64_t> counts(logits.size(), 0);
  for (int64_t position = 0; position < kDraws; ++position) {
    auto token = chain.sample(logits, {history, static_cast<int64_t>(history.size())}, position, allowed);
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
  EXPECT_LE(statistic, critical(cells - 1));
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

// H of kWeights is 1.616 nats: nearest lie 8 (-log p = 1.905), 13 (1.419), 5 (2.375), 21 (0.940), 3, 2, ...
// 13: 0.197, 8: 0.288, 21: 0.676, 5: 0.758 away; 13 + 8 = 21 < 0.7 * 53.75 = 37.6 < 42.
TEST(Distribution, Typical) {
  expect_distribution({.temperature = 1, .typical_p = 0.7}, logs(kWeights), {8, 0, 0, 0, 0, 13, 0, 0, 21});
  expect_distribution({.temperature = 1, .typical_p = 0.3}, logs(kWeights), {8, 0, 0, 0, 0, 13, 0, 0, 0});
}

// Logs: 2.079 0 1.609 0.693 -0.693 2.565 1.099 -1.386 3.045; deviation 1.411.
TEST(Distribution, TopNSigma) {
  expect_distribution({.temperature = 1, .top_n_sigma = 1}, logs(kWeights), {8, 0, 0, 0, 0, 13, 0, 0, 21});
  expect_distribution({.temperature = 2, .top_n_sigma = 0.5}, logs(kWeights),
                      {0, 0, 0, 0, 0, std::sqrt(13.0), 0, 0, std::sqrt(21.0)});
}

// Kept are weights of at least (sum of squares) / sum: 713.3 / 53.75 = 13.27; of the roots 53.75 / 18.61 = 2.888, above
// the root of 8; of the fourth roots 18.61 / 12.27 = 1.517, above the fourth root of 5 and below that of 8.
TEST(Distribution, PLess) {
  const std::pair<double, double> least[] = {{1, 21}, {2, 13}, {4, 8}};
  for (const auto& [temperature, weight_kept] : least) {
    std::vector<double> expected;
    for (const double weight : kWeights)
      expected.push_back(weight >= weight_kept ? std::pow(weight, 1 / temperature) : 0);
    expect_distribution({.temperature = temperature, .p_less = true}, logs(kWeights), expected);
  }
}

// At threshold 0.1 the choices are 8, 13 and 21; in three tenths of the draws only the 8 of them is left.
TEST(Distribution, Xtc) {
  std::vector<double> expected;
  const double left = 53.75 - 13 - 21;
  for (const double weight : kWeights)
    expected.push_back(0.7 * weight / 53.75 + (weight <= 8 ? 0.3 * weight / left : 0));
  expect_distribution({.temperature = 1, .xtc_probability = 0.3, .xtc_threshold = 0.1}, logs(kWeights), expected);
}

TEST(Distribution, DynamicTemperature) {
  double entropy = 0;
  for (const double weight : kWeights) entropy -= weight / 53.75 * std::log(weight / 53.75);
  const double temperature = 0.5 + 2 * std::pow(entropy / std::log(9.0), 2.0);
  std::vector<double> expected;
  for (const double weight : kWeights) expected.push_back(std::pow(weight, 1 / temperature));
  expect_distribution({.temperature = 1.5, .dynatemp_range = 1, .dynatemp_exponent = 2}, logs(kWeights), expected);
}

// mu is 2 tau = 2.8 bits: p >= 0.1436, that is 7.72 of 53.75.
TEST(Distribution, Mirostat2) {
  expect_distribution({.temperature = 1, .top_k = 1, .mirostat = 2, .mirostat_tau = 1.4}, logs(kWeights),
                      {8, 0, 0, 0, 0, 13, 0, 0, 21});
}

// Weights of a Zipf law of exponent 2, so s = 2, e = 1 and k = sqrt(2^mu / (1 - 1/8)): 4.28 at mu = 4.
TEST(Distribution, Mirostat1) {
  std::vector<double> weights, expected;
  for (int rank = 1; rank <= 8; ++rank) {
    weights.push_back(1.0 / (rank * rank));
    expected.push_back(rank <= 4 ? weights.back() : 0);
  }
  expect_distribution({.temperature = 1, .mirostat = 1, .mirostat_tau = 2}, logs(weights), expected);
}

TEST(Distribution, AdaptiveP) {
  std::vector<double> expected;
  for (const double weight : kWeights) {
    const double d = std::abs(weight / 53.75 - 0.2) / 0.3;
    expected.push_back(std::exp(-10 * d * d / (1 + d)));
  }
  expect_distribution({.temperature = 1, .adaptive_target = 0.2, .order = {"temperature", "adaptive_p"}},
                      logs(kWeights), expected);
}

// 5 5 5 5: matches of 3, 2 and 1 tokens precede a 5. 6 follows a match of one.
TEST(Distribution, Dry) {
  std::vector<double> expected = kWeights;
  expected[5] *= std::exp(-0.5 * 1.5 * 1.5);
  expected[6] *= std::exp(-0.5);
  expect_distribution({.temperature = 1, .dry_multiplier = 0.5, .dry_base = 1.5, .dry_allowed_length = 1},
                      logs(kWeights), expected, {5, 6, 5, 5, 5, 5});
}

TEST(Distribution, LanguageBias) {
  std::vector<float> table(kWeights.size(), 0);
  std::vector<double> expected = kWeights;
  table[2] = 1.5f;
  table[8] = -INFINITY;
  expected[2] *= std::exp(1.5);
  expected[8] = 0;
  expect_distribution({.temperature = 1, .bias_table = std::make_shared<const std::vector<float>>(table)},
                      logs(kWeights), expected);
}

TEST(Distribution, ConstraintWords) {
  expect_distribution({.temperature = 1}, logs(kWeights), {8, 0, 5, 0, 0.5, 0, 3, 0, 0}, {}, {0b001010101});
  // Filters see what the constraint left.
  expect_distribution({.temperature = 1, .top_k = 2}, logs(kWeights), {8, 0, 5, 0, 0, 0, 0, 0, 0}, {}, {0b001010101});
}

TEST(Distribution, OrderOfTemperatureAndTopP) {
  // Tempered first the 21 alone has more than half; so has it not untempered.
  const std::vector<double> alone = {0, 0, 0, 0, 0, 0, 0, 0, 21};
  expect_distribution({.temperature = 0.5, .top_p = 0.5, .order = {"temperature", "top_p"}}, logs(kWeights), alone);
  expect_distribution({.temperature = 0.5, .top_p = 0.5, .order = {"top_p", "temperature"}}, logs(kWeights),
                      {0, 0, 0, 0, 0, 13 * 13, 0, 0, 21 * 21});
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
