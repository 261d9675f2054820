#include "cli/divergence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vedette::cli {
namespace {

TEST(Divergence, ClosedForm) {
  const std::vector<float> base = {std::log(0.5f), std::log(0.25f), std::log(0.25f)};
  const std::vector<float> test = {std::log(0.25f), std::log(0.5f), std::log(0.25f)};
  std::vector<double> p, q;
  log_softmax(base, p);
  log_softmax(test, q);
  Divergence divergence;
  divergence.add(base, p, q);
  // 0.5 ln 2 - 0.25 ln 2
  EXPECT_NEAR(divergence.mean(), 0.25 * std::log(2.0), 1e-6);
  EXPECT_EQ(divergence.differing_tops(), 1);
  EXPECT_NEAR(divergence.largest_margin(), std::log(2.0), 1e-6);
  divergence.add(base, p, p);
  EXPECT_NEAR(divergence.mean(), 0.125 * std::log(2.0), 1e-6);
  EXPECT_NEAR(divergence.maximum(), 0.25 * std::log(2.0), 1e-6);
  EXPECT_EQ(divergence.same_top_fraction(), 0.5);
}

TEST(Perplexity, OfAUniformDistributionIsItsSize) {
  std::vector<double> log_probabilities;
  log_softmax(std::vector<float>(8, 1000.0f), log_probabilities);
  Perplexity perplexity;
  for (int32_t token = 0; token < 8; ++token) perplexity.add(log_probabilities, token);
  EXPECT_NEAR(perplexity.value(), 8.0, 1e-9);
}

}  // namespace
}  // namespace vedette::cli
