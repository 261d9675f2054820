// Links that learn from the draws: their state follows the history alone, and goes with a clone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sampling/links.h"

namespace vedette::sampling {
namespace {

constexpr size_t kVocab = 400;

const SamplingParams kVariants[] = {
    {.temperature = 1, .mirostat = 1, .mirostat_tau = 3},
    {.temperature = 1, .mirostat = 2, .mirostat_tau = 3},
    {.temperature = 1, .adaptive_target = 0.3, .adaptive_decay = 0.8, .order = {"temperature", "adaptive_p"}},
};

std::vector<float> row(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::vector<int32_t> generate(SamplerChain chain, std::vector<int32_t> history, int tokens) {
  for (int i = 0; i < tokens; ++i)
    history.push_back(*chain.sample(row(history.size()), {history, 2}, static_cast<int64_t>(history.size())));
  return history;
}

TEST(Feedback, SameSeedSameTokens) {
  for (const SamplingParams& params : kVariants) {
    const SamplerChain chain(params, 3, kVocab);
    EXPECT_EQ(generate(chain, {1, 2}, 60), generate(chain, {1, 2}, 60));
    EXPECT_NE(generate(chain, {1, 2}, 60), generate(SamplerChain(params, 4, kVocab), {1, 2}, 60));
  }
}

// A clone taken before, and one taken after, tokens that are rolled back goes on as the original does.
TEST(Feedback, AClonesStateIsTheOriginals) {
  for (const SamplingParams& params : kVariants) {
    SamplerChain chain(params, 3, kVocab);
    std::vector<int32_t> history = {1, 2};
    for (int i = 0; i < 30; ++i) {
      const SamplerChain clone = chain;
      const std::vector<int32_t> ahead = generate(clone, history, 5);
      history.push_back(*chain.sample(row(history.size()), {history, 2}, static_cast<int64_t>(history.size())));
      ASSERT_EQ(history.back(), ahead[history.size() - 1]);
    }
  }
}

// Asking again for the same place, as after a preemption, changes nothing.
TEST(Feedback, TheSamePlaceTwiceIsTheSameToken) {
  for (const SamplingParams& params : kVariants) {
    SamplerChain chain(params, 3, kVocab);
    const std::vector<int32_t> expected = generate(chain, {1, 2}, 40);
    std::vector<int32_t> history = {1, 2};
    for (int i = 0; i < 40; ++i) {
      const auto position = static_cast<int64_t>(history.size());
      const int32_t first = *chain.sample(row(history.size()), {history, 2}, position);
      ASSERT_EQ(first, *chain.sample(row(history.size()), {history, 2}, position));
      history.push_back(first);
    }
    EXPECT_EQ(history, expected);
  }
}

TEST(Feedback, StateMatters) {
  for (const SamplingParams& params : kVariants) {
    const std::vector<int32_t> learned = generate(SamplerChain(params, 3, kVocab), {1, 2}, 100);
    std::vector<int32_t> fresh = {1, 2};
    while (fresh.size() < learned.size()) {
      const std::span<const int32_t> history(learned.data(), fresh.size());
      SamplerChain chain(params, 3, kVocab);
      fresh.push_back(*chain.sample(row(fresh.size()), {history, 2}, static_cast<int64_t>(fresh.size())));
    }
    EXPECT_NE(learned, fresh);
  }
}

// Forced tokens, which were not kept or not drawn at all, teach nothing and break nothing.
TEST(Feedback, ForcedTokens) {
  for (const SamplingParams& params : kVariants) {
    SamplerChain chain(params, 3, kVocab);
    std::vector<int32_t> history = {1, 2};
    for (int i = 0; i < 60; ++i) {
      const auto token = chain.sample(row(history.size()), {history, 2}, static_cast<int64_t>(history.size()));
      ASSERT_TRUE(token.ok());
      history.push_back(i % 3 == 0 ? 100000 : *token);
      if (i % 5 == 0) history.insert(history.end(), {7, 8, 9});
    }
  }
}

// A token that the constraint or its own logit excluded, forced all the same, does not carry the state away.
TEST(Feedback, ForcedTokensThatWereExcluded) {
  for (const SamplingParams& params : kVariants) {
    SamplerChain chain(params, 3, kVocab);
    std::vector<float> logits = row(5);
    logits[10] = -3e38f;
    std::vector<uint32_t> allowed((kVocab + 31) / 32, ~0u);
    allowed[0] = ~1u;
    std::vector<int32_t> history = {1, 2};
    std::vector<int32_t> seen;
    for (int i = 0; i < 400; ++i) {
      const auto token = chain.sample(logits, {history, 2}, static_cast<int64_t>(history.size()), allowed);
      ASSERT_TRUE(token.ok());
      if (i >= 300) seen.push_back(*token);
      history.push_back(i < 10 ? i % 2 * 10 : *token);
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_GT(std::unique(seen.begin(), seen.end()) - seen.begin(), 5) << "variant " << &params - kVariants;
  }
}

double probability_of(const std::vector<float>& logits, int32_t id) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return std::exp(static_cast<double>(logits[static_cast<size_t>(id)])) / sum;
}

// The purpose of mirostat: the mean surprise of the draws, among those kept, comes to tau.
TEST(Mirostat, SurpriseComesToTau) {
  for (const int version : {1, 2})
    for (const double tau : {1.5, 3.0}) {
      const SamplingParams params{.temperature = 1, .mirostat = version, .mirostat_tau = tau};
      std::unique_ptr<Sampler> sampler;
      for (const Link* link : chain_links(params, false))
        if (link->kind == LinkKind::kMirostat && !sampler) sampler = link->make(params, kVocab);
      std::mt19937 random(6);
      std::vector<int32_t> history = {1};
      double surprise = 0;
      for (int i = 0; i < 1500; ++i) {
        std::vector<Candidate> candidates;
        for (const float logit : row(history.size()))
          candidates.push_back({static_cast<int32_t>(candidates.size()), logit});
        sampler->apply(candidates, {history, 1});
        std::vector<double> weights;
        for (const Candidate& candidate : candidates) weights.push_back(std::exp(static_cast<double>(candidate.logit)));
        std::discrete_distribution<size_t> draw(weights.begin(), weights.end());
        const size_t drawn = draw(random);
        if (i >= 500) surprise -= std::log2(draw.probabilities()[drawn]) / 1000;
        history.push_back(candidates[drawn].id);
      }
      EXPECT_NEAR(surprise, tau, 0.1) << "version " << version;
    }
}

TEST(AdaptiveP, MeanProbabilityComesToTheTarget) {
  double means[2];
  for (const int which : {0, 1}) {
    const SamplingParams params{
        .temperature = 1, .adaptive_target = which == 0 ? 0.1 : 0.4, .order = {"temperature", "adaptive_p"}};
    const std::vector<int32_t> ids = generate(SamplerChain(params, 9, kVocab), {1, 2}, 800);
    double sum = 0;
    for (size_t i = 2; i < ids.size(); ++i) sum += probability_of(row(i), ids[i]);
    means[which] = sum / 800;
  }
  EXPECT_LT(means[0], means[1] - 0.05);
}

// Mirostat 2 step by step against its definition.
TEST(Mirostat, StateFollowsTheFormula) {
  const SamplingParams params{.temperature = 1, .mirostat = 2, .mirostat_tau = 2, .mirostat_eta = 0.4};
  std::unique_ptr<Sampler> sampler;
  for (const Link& link : links())
    if (std::string(link.name) == "mirostat_2") sampler = link.make(params, kVocab);
  std::mt19937 random(6);
  std::vector<int32_t> history = {1};
  double mu = 4;
  for (int i = 0; i < 100; ++i) {
    const std::vector<float> logits = row(static_cast<uint64_t>(i));
    std::vector<Candidate> candidates;
    double sum = 0;
    for (size_t id = 0; id < kVocab; ++id) candidates.push_back({static_cast<int32_t>(id), logits[id]});
    sampler->apply(candidates, {history, 1});
    const size_t expected = std::max<int64_t>(
        1, std::count_if(logits.begin(), logits.end(), [&](const float& logit) {
          return -std::log2(probability_of(logits, static_cast<int32_t>(&logit - logits.data()))) <= mu;
        }));
    ASSERT_EQ(candidates.size(), expected) << "token " << i;
    for (const Candidate& candidate : candidates) sum += std::exp(static_cast<double>(candidate.logit));
    const Candidate& drawn = candidates[random() % candidates.size()];
    history.push_back(drawn.id);
    mu -= 0.4 * (-std::log2(std::exp(static_cast<double>(drawn.logit)) / sum) - 2);
  }
}

}  // namespace
}  // namespace vedette::sampling
