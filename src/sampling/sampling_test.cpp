#include "sampling/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "sampling/links.h"
#include "sampling/noise.h"

namespace vedette::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_logits(size_t n, uint64_t seed, float deviation = 3) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

int32_t drawn(const SamplingParams& params, const std::vector<float>& logits, int64_t position = 0, uint64_t seed = 1,
              std::span<const int32_t> history = {}) {
  SamplerChain chain(params, seed, static_cast<int64_t>(logits.size()));
  auto token = chain.sample(logits, {history, static_cast<int64_t>(history.size())}, position);
  EXPECT_TRUE(token.ok());
  return token.ok() ? *token : -1;
}

TEST(Greedy, TakesTheHighestLogitAndTheLowestIdOfEquals) {
  EXPECT_EQ(drawn({}, {1, 3, 2, 3}), 1);
  EXPECT_EQ(drawn({.temperature = 5, .top_k = 1}, {1, 3, 2, 3}), 1);
  EXPECT_EQ(drawn({}, {kNan, -5, kNan, -4}), 3);
  EXPECT_EQ(drawn({}, {kNan, -5, kInf, -4}), 2);
}

TEST(Greedy, FiltersDoNotRun) {
  EXPECT_EQ(drawn({.top_p = 0.01, .min_p = 1}, {1, 3, 2, 3}), 1);
}

TEST(Chain, ARowWithoutANumberIsAnError) {
  for (const double temperature : {0.0, 1.0}) {
    SamplerChain chain({.temperature = temperature, .top_k = 2, .top_p = 0.5, .min_p = 0.1}, 1, 4);
    for (const std::vector<float>& logits : {std::vector<float>(4, kNan), std::vector<float>(4, -kInf)}) {
      auto token = chain.sample(logits, {}, 7);
      ASSERT_FALSE(token.ok());
      EXPECT_EQ(token.error().kind, ErrorKind::kInternal);
      EXPECT_NE(token.error().message.find("position 7"), std::string::npos);
    }
    EXPECT_TRUE(chain.sample(std::vector<float>{0, 1, kNan, -kInf}, {}, 8).ok());
  }
}

TEST(LogitBias, AddsAndBans) {
  EXPECT_EQ(drawn({.logit_bias = {{0, 2.5f}}}, {1, 3, 2}), 0);
  EXPECT_EQ(drawn({.logit_bias = {{1, -kInf}}}, {1, 3, 2}), 2);
  EXPECT_EQ(drawn({.logit_bias = {{99, 5.f}}}, {1, 3, 2}), 1);
}

TEST(Penalties, Repetition) {
  const std::vector<int32_t> history = {0, 2};
  EXPECT_EQ(drawn({.repetition_penalty = 2}, {4, 3, 1}, 0, 1, history), 1);       // 4 / 2 < 3
  EXPECT_EQ(drawn({.repetition_penalty = 2}, {-1, -1.5, -9}, 0, 1, history), 1);  // -1 * 2 < -1.5
}

TEST(Penalties, FrequencyCountsAndPresenceDoesNot) {
  const std::vector<int32_t> history = {0, 0, 0, 1};
  EXPECT_EQ(drawn({.frequency_penalty = 1}, {4, 3, 1.5}, 0, 1, history), 1);  // 1, 2, 1.5
  EXPECT_EQ(drawn({.presence_penalty = 1}, {4, 3, 1.5}, 0, 1, history), 0);   // 3, 2, 1.5
}

TEST(Penalties, WindowFollowsTheHistory) {
  SamplerChain chain({.presence_penalty = 10, .repeat_last_n = 2}, 1, 4);
  const std::vector<float> logits = {4, 3, 2, 1};
  std::vector<int32_t> history = {0, 1};
  EXPECT_EQ(*chain.sample(logits, {history, 2}, 2), 2);
  history.push_back(2);  // window 1 2
  EXPECT_EQ(*chain.sample(logits, {history, 2}, 3), 0);
  history.insert(history.end(), {3, 3, 0});  // window 3 0
  EXPECT_EQ(*chain.sample(logits, {history, 2}, 6), 1);
  EXPECT_EQ(drawn({.presence_penalty = 10, .repeat_last_n = 0}, logits, 0, 1, history), 0);
  EXPECT_EQ(drawn({.presence_penalty = 10, .repeat_last_n = 64}, logits, 0, 1, std::vector<int32_t>{0}), 1);
}

TEST(Penalties, IncrementalCountsEqualFreshOnes) {
  std::mt19937 random(5);
  const std::vector<float> logits = random_logits(50, 4);
  const SamplingParams params{.temperature = 1,
                              .repetition_penalty = 1.3,
                              .frequency_penalty = 0.4,
                              .presence_penalty = -0.2,
                              .repeat_last_n = 20};
  SamplerChain chain(params, 9, 50);
  std::vector<int32_t> history = {3, 3, 4};
  for (int i = 0; i < 300; ++i) {
    const auto position = static_cast<int64_t>(history.size());
    const SamplerChain copy = chain;
    SamplerChain fresh(params, 9, 50);
    const int32_t token = *chain.sample(logits, {history, 3}, position);
    SamplerChain cloned = copy;
    ASSERT_EQ(token, *fresh.sample(logits, {history, 3}, position));
    ASSERT_EQ(token, *cloned.sample(logits, {history, 3}, position));
    history.push_back(token);
    if (i % 7 == 0) history.insert(history.end(), {static_cast<int32_t>(random() % 50), 1});
  }
}

std::vector<Candidate> all(const std::vector<float>& logits) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logits.size(); ++i) candidates.push_back({static_cast<int32_t>(i), logits[i]});
  return candidates;
}

std::vector<int32_t> kept(const char* link_name, const SamplingParams& params, const std::vector<float>& logits) {
  std::vector<Candidate> candidates = all(logits);
  for (const Link& link : links())
    if (std::string(link.name) == link_name)
      if (auto sampler = link.make(params, static_cast<int64_t>(logits.size()))) sampler->apply(candidates, {});
  std::vector<int32_t> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.id);
  return ids;
}

// The obvious definition: sort everything.
std::vector<int32_t> reference_kept(const SamplingParams& params, const std::vector<float>& logits) {
  std::vector<Candidate> sorted = all(logits);
  std::sort(sorted.begin(), sorted.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  if (params.top_k > 0) sorted.resize(std::min(sorted.size(), static_cast<size_t>(params.top_k)));
  if (params.top_p < 1) {
    double total = 0, mass = 0;
    for (const Candidate& candidate : sorted) total += std::exp(double(candidate.logit) - sorted[0].logit);
    size_t n = 0;
    while (n < sorted.size() && (n == 0 || mass < params.top_p * total))
      mass += std::exp(double(sorted[n++].logit) - sorted[0].logit);
    sorted.resize(n);
  }
  std::vector<int32_t> ids;
  for (const Candidate& candidate : sorted) ids.push_back(candidate.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Filters, TopKEqualsSorting) {
  for (const size_t n : {5u, 300u, 5000u})
    for (const int64_t k : {1, 2, 40, 299, 4000})
      for (const float step : {0.f, 0.5f}) {
        std::vector<float> logits = random_logits(n, n + static_cast<size_t>(k));
        if (step > 0)  // many equal logits
          for (float& logit : logits) logit = std::round(logit / step) * step;
        EXPECT_EQ(kept("top_k", {.top_k = k}, logits), reference_kept({.top_k = k}, logits)) << n << " " << k;
      }
}

TEST(Filters, TopKOfAscendingLogits) {
  std::vector<float> logits(10000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i);
  EXPECT_EQ(kept("top_k", {.top_k = 3}, logits), (std::vector<int32_t>{9997, 9998, 9999}));
}

TEST(Filters, TopPEqualsSorting) {
  for (const size_t n : {5u, 300u, 5000u})
    for (const double p : {0.05, 0.5, 0.9, 0.99, 0.9999})
      for (const float deviation : {0.1f, 3.f, 30.f}) {
        const std::vector<float> logits = random_logits(n, n, deviation);
        EXPECT_EQ(kept("top_p", {.top_p = p}, logits), reference_kept({.top_p = p}, logits)) << n << " " << p;
      }
  EXPECT_EQ(kept("top_p", {.top_p = 0}, {1, 2, 2}), (std::vector<int32_t>{1}));
  EXPECT_EQ(kept("top_p", {.top_p = 0.5}, {1, 1, 1, 1}), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(kept("top_p", {.top_p = 0.9}, {-kInf, 1, -kInf}), (std::vector<int32_t>{1}));
}

TEST(Filters, MinPIsRelativeToTheBest) {
  EXPECT_EQ(kept("min_p", {.min_p = 0.5}, {0, std::log(0.49f), std::log(0.51f), -kInf}), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(kept("min_p", {.min_p = 1}, {0, 0, -0.001f}), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(kept("min_p", {.min_p = 0}, {0, -300}), (std::vector<int32_t>{0, 1}));
}

// Every link keeps a token where one is allowed, and none where none is.
TEST(Constraint, WordsAreHonouredByEveryLink) {
  const SamplingParams variants[] = {
      {},
      {.temperature = 1},
      {.temperature = 1, .top_k = 3, .top_p = 0.5, .min_p = 0.5},
      {.temperature = 1, .typical_p = 0.3},
      {.temperature = 1, .top_n_sigma = 0.1},
      {.temperature = 1, .p_less = true},
      {.temperature = 1, .xtc_probability = 1, .xtc_threshold = 0},
      {.temperature = 0.5, .dynatemp_range = 0.5},
      {.temperature = 1, .mirostat = 1, .mirostat_tau = 0.1},
      {.temperature = 1, .mirostat = 2, .mirostat_tau = 0.1},
      {.temperature = 1, .adaptive_target = 0, .order = {"adaptive_p"}},
      {.temperature = 1, .dry_multiplier = 100, .dry_base = 100, .dry_allowed_length = 0},
  };
  const std::vector<float> logits = random_logits(70, 3);
  const std::vector<int32_t> history(400, 69);
  for (const SamplingParams& params : variants) {
    SamplerChain chain(params, 1, 70);
    for (int64_t position = 0; position < 50; ++position) {
      const std::vector<uint32_t> two = {0, 1u << 5, 1u << 5};  // 37 and 69
      const int32_t token = *chain.sample(logits, {history, 400}, position, two);
      ASSERT_TRUE(token == 37 || token == 69) << token;
      const std::vector<uint32_t> one = {0, 0, 1u << 5};
      ASSERT_EQ(*chain.sample(logits, {history, 400}, position, one), 69);
    }
    const std::vector<uint32_t> none(3, 0);
    const auto refused = chain.sample(logits, {history, 400}, 5, none);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kInternal);
    EXPECT_EQ(refused.error().message,
              "position 5: none of 70 logits that the constraint allows is a number above -infinity, no token can be "
              "chosen");
    const auto short_words = chain.sample(logits, {history, 400}, 5, std::vector<uint32_t>(2, ~0u));
    ASSERT_FALSE(short_words.ok());
    EXPECT_EQ(short_words.error().message, "position 5: a constraint of 2 words cannot cover 70 logits");
  }
}

TEST(LogitBias, BiasesThatForbidEveryTokenAreTheRequestsFault) {
  SamplingParams params{.temperature = 0};
  for (int32_t id = 0; id < 70; ++id) params.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
  SamplerChain chain(params, 1, 70);
  const auto refused = chain.sample(random_logits(70, 3), {}, 5, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalidRequest);
  EXPECT_EQ(refused.error().field, "logit_bias");
}

// The draw skips most candidates; the plain definition computes them all.
TEST(Draw, EqualsTheFullArgmax) {
  for (const float deviation : {0.f, 0.5f, 3.f, 20.f})
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const std::vector<float> logits = random_logits(3001, seed, deviation);
      int32_t winner = -1;
      double best = -std::numeric_limits<double>::infinity();
      for (uint32_t id = 0; id < logits.size(); ++id) {
        const double score = logits[id] + gumbel(noise_block({seed, 0, Purpose::kToken}, 5, id / 4)[id % 4]);
        if (score > best) {
          best = score;
          winner = static_cast<int32_t>(id);
        }
      }
      ASSERT_EQ(drawn({.temperature = 1}, logits, 5, seed), winner);
    }
}

TEST(Draw, SameSeedSameTokenAndPositionsAreIndependent) {
  const std::vector<float> logits(1000, 0.f);
  const SamplingParams params{.temperature = 1};
  SamplerChain chain(params, 42, 1000);
  std::vector<int32_t> forward, backward;
  for (int64_t position = 0; position < 100; ++position) forward.push_back(*chain.sample(logits, {}, position));
  for (int64_t position = 99; position >= 0; --position) backward.push_back(drawn(params, logits, position, 42));
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  EXPECT_GT(std::set<int32_t>(forward.begin(), forward.end()).size(), 80u);
  EXPECT_NE(drawn({.temperature = 1, .choice = 1}, logits, 0, 42), forward[0]);
  EXPECT_NE(drawn(params, logits, 0, 43), forward[0]);
}

// A filter removes candidates but never moves the noise of those that stay.
TEST(Draw, NoiseBelongsToTheToken) {
  const std::vector<float> logits = random_logits(500, 8, 1);
  for (int64_t position = 0; position < 200; ++position) {
    const int32_t free = drawn({.temperature = 1}, logits, position);
    const auto ids = kept("top_k", {.top_k = 100}, logits);
    if (std::binary_search(ids.begin(), ids.end(), free)) {
      ASSERT_EQ(drawn({.temperature = 1, .top_k = 100}, logits, position), free);
    }
  }
}

TEST(Draw, ExtremeTemperatures) {
  const std::vector<float> logits = {1, 1.0001f, 0};
  EXPECT_EQ(drawn({.temperature = 1e-300}, logits), 1);
  EXPECT_EQ(drawn({.temperature = 1e-6}, {3e38f, -3e38f, kInf}), 2);  // infinity counts as the largest float
  std::set<int32_t> seen;
  for (int64_t position = 0; position < 100; ++position) seen.insert(drawn({.temperature = 100}, logits, position));
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Validate, NamesTheFieldTheValueAndTheRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    SamplingParams params;
    const char* field;
    const char* text;
  };
  const Case cases[] = {
      {{.temperature = -0.1}, "temperature", "temperature is -0.1, must be a number from 0 to 100"},
      {{.temperature = 101}, "temperature", "temperature is 101, must be a number from 0 to 100"},
      {{.temperature = nan}, "temperature", "temperature is nan, must be a number from 0 to 100"},
      {{.top_k = -2}, "top_k", "top_k is -2, must be an integer from -1 to 1000000000"},
      {{.top_p = 1.5}, "top_p", "top_p is 1.5, must be a number from 0 to 1"},
      {{.min_p = -1}, "min_p", "min_p is -1, must be a number from 0 to 1"},
      {{.repetition_penalty = 0}, "repeat_penalty", "repeat_penalty is 0, must be a number from 0.01 to 100"},
      {{.frequency_penalty = 1e9},
       "frequency_penalty",
       "frequency_penalty is 1000000000, must be a number from -100 to 100"},
      {{.presence_penalty = nan}, "presence_penalty", "presence_penalty is nan, must be a number from -100 to 100"},
      {{.repeat_last_n = -2}, "repeat_last_n", "repeat_last_n is -2, must be an integer from -1 to 1000000000"},
      {{.logit_bias = {{-1, 0.f}}}, "logit_bias", "logit_bias: token id -1 must not be negative"},
      {{.logit_bias = {{3, kInf}}}, "logit_bias", "logit_bias of token 3 is inf, must be a finite number or -infinity"},
      {{.logit_bias = {{3, kNan}}}, "logit_bias", "logit_bias of token 3 is nan, must be a finite number or -infinity"},
      {{.typical_p = 1.01}, "typical_p", "typical_p is 1.01, must be a number from 0 to 1"},
      {{.top_n_sigma = -2}, "top_n_sigma", "top_n_sigma is -2, must be a number from -1 to 1000"},
      {{.xtc_probability = -0.1}, "xtc_probability", "xtc_probability is -0.1, must be a number from 0 to 1"},
      {{.xtc_threshold = 2}, "xtc_threshold", "xtc_threshold is 2, must be a number from 0 to 1"},
      {{.dynatemp_range = -1}, "dynatemp_range", "dynatemp_range is -1, must be a number from 0 to 100"},
      {{.dynatemp_exponent = nan}, "dynatemp_exponent", "dynatemp_exponent is nan, must be a number from 0 to 100"},
      {{.dry_multiplier = -1}, "dry_multiplier", "dry_multiplier is -1, must be a number from 0 to 100"},
      {{.dry_base = 0.5}, "dry_base", "dry_base is 0.5, must be a number from 1 to 100"},
      {{.dry_allowed_length = -1},
       "dry_allowed_length",
       "dry_allowed_length is -1, must be an integer from 0 to 1000000000"},
      {{.dry_penalty_last_n = -2},
       "dry_penalty_last_n",
       "dry_penalty_last_n is -2, must be an integer from -1 to 1000000000"},
      {{.mirostat = 3}, "mirostat", "mirostat is 3, must be an integer from 0 to 2"},
      {{.mirostat_tau = -1}, "mirostat_tau", "mirostat_tau is -1, must be a number from 0 to 100"},
      {{.mirostat_eta = 101}, "mirostat_eta", "mirostat_eta is 101, must be a number from 0 to 100"},
      {{.adaptive_target = 1.5}, "adaptive_target", "adaptive_target is 1.5, must be a number from -1 to 1"},
      {{.adaptive_decay = 1}, "adaptive_decay", "adaptive_decay is 1, must be a number from 0 to 0.99"},
      {{.bias_table = std::make_shared<const std::vector<float>>(std::vector<float>{0, kNan})},
       "language_bias",
       "language_bias of token 1 is nan, must be a finite number or -infinity"},
  };
  for (const Case& one : cases) {
    const Status status = validate(one.params);
    ASSERT_FALSE(status.ok()) << one.text;
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalidRequest);
    EXPECT_EQ(status.error().field, one.field);
    EXPECT_EQ(status.error().message, one.text);
  }
  EXPECT_TRUE(validate({}).ok());
  EXPECT_TRUE(validate({.temperature = 2, .top_k = 40, .top_p = 0.9, .logit_bias = {{0, -kInf}}}).ok());
}

}  // namespace
}  // namespace vedette::sampling
