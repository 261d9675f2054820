#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace vedette::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Logprobs, SumToOneAndEqualTheDefinition) {
  for (const size_t n : {1u, 7u, 1000u, 50000u})
    for (const float deviation : {0.f, 1.f, 20.f}) {
      std::mt19937_64 random(n);
      std::normal_distribution<float> normal(3, 1);
      std::vector<float> logits(n);
      for (float& logit : logits) logit = normal(random) * deviation;
      const double best = *std::max_element(logits.begin(), logits.end());
      double sum = 0, total = 0;
      for (const float logit : logits) sum += std::exp(logit - best);
      std::vector<TokenLogprob> top;
      const size_t step = n <= 1000 ? 1 : n / 20;
      for (size_t id = 0; id < n; id += step) {
        const float logprob = token_logprobs(logits, static_cast<int32_t>(id), 0, top);
        const double expected = logits[id] - best - std::log(sum);
        ASSERT_NEAR(logprob, expected, 1e-6 * std::abs(expected) + 1e-6);
        total += std::exp(static_cast<double>(logprob));
      }
      if (step == 1) {
        EXPECT_NEAR(total, 1, 1e-4);
      }
    }
}

TEST(Logprobs, TopIsSortedAndTiesGoToLowerIds) {
  std::mt19937 random(2);
  std::vector<float> logits(3000);
  for (float& logit : logits) logit = static_cast<float>(random() % 40);
  std::vector<int32_t> sorted(logits.size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<int32_t>(i);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  std::vector<TokenLogprob> top;
  for (const int64_t n : {1, 5, 100}) {
    token_logprobs(logits, 0, n, top);
    ASSERT_EQ(top.size(), static_cast<size_t>(n));
    for (size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].id, sorted[i]);
      std::vector<TokenLogprob> none;
      EXPECT_EQ(top[i].logprob, token_logprobs(logits, top[i].id, 0, none));
      EXPECT_TRUE(none.empty());
    }
  }
  token_logprobs(logits, 0, 5000, top);
  EXPECT_EQ(top.size(), static_cast<size_t>(kMaxTopLogprobs));
  token_logprobs(std::vector<float>{1, 2}, 0, 20, top);
  EXPECT_EQ(top.size(), 2u);
  token_logprobs(logits, 0, -3, top);
  EXPECT_TRUE(top.empty());
}

TEST(Logprobs, RowsThatAreNotNumbers) {
  std::vector<TokenLogprob> top;
  EXPECT_EQ(token_logprobs(std::vector<float>{-kInf, std::nanf("")}, 0, 2, top), -kInf);
  EXPECT_EQ(top[0].logprob, -kInf);
  EXPECT_EQ(token_logprobs(std::vector<float>{std::nanf(""), 5}, 1, 2, top), 0);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(token_logprobs(std::vector<float>{1, 2}, 7, 0, top), -kInf);
  EXPECT_EQ(token_logprobs(std::vector<float>{1, 2}, -1, 0, top), -kInf);
  EXPECT_EQ(token_logprobs({}, 0, 3, top), -kInf);
  EXPECT_EQ(token_logprobs(std::vector<float>{kInf, 0}, 0, 1, top), 0);
}

}  // namespace
}  // namespace vedette::sampling
