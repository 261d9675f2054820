#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "sampling/dry_breakers.h"
#include "sampling/links.h"

namespace vedette::sampling {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

std::vector<float> penalties(const SamplingParams& params, const std::vector<int32_t>& history, size_t vocab) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < vocab; ++i) candidates.push_back({static_cast<int32_t>(i), 0.f});
  for (const Link& link : links())
    if (std::string(link.name) == "dry")
      if (auto sampler = link.make(params, static_cast<int64_t>(vocab)))
        sampler->apply(candidates, {history, static_cast<int64_t>(history.size())});
  std::vector<float> result;
  for (const Candidate& candidate : candidates) result.push_back(-candidate.logit);
  return result;
}

TEST(Dry, PenalizesWhatWouldGoOn) {
  const SamplingParams params{.dry_multiplier = 0.8, .dry_base = 2, .dry_allowed_length = 2};
  // "1 2 3 4 ... 1 2 3": after three repeated tokens 4 would go on.
  EXPECT_FLOAT_EQ(penalties(params, {1, 2, 3, 4, 9, 1, 2, 3}, 10)[4], 0.8f * 2);
  EXPECT_FLOAT_EQ(penalties(params, {1, 2, 3, 4, 9, 8, 2, 3}, 10)[4], 0.8f);  // just the allowed length
  EXPECT_EQ(penalties(params, {1, 2, 3, 4, 9, 8, 7, 3}, 10), std::vector<float>(10, 0.f));
  EXPECT_EQ(penalties(params, {1, 2}, 10), std::vector<float>(10, 0.f));
  EXPECT_EQ(penalties(params, {}, 10), std::vector<float>(10, 0.f));
}

TEST(Dry, BreakersEndTheSearch) {
  SamplingParams params{.dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 2};
  const std::vector<int32_t> history = {1, 2, 3, 4, 5, 9, 1, 2, 3, 4};
  EXPECT_FLOAT_EQ(penalties(params, history, 10)[5], 4);
  params.dry_breakers = std::make_shared<const Sequences>(Sequences{{2}});
  EXPECT_FLOAT_EQ(penalties(params, history, 10)[5], 1);  // 3 4 alone
  params.dry_breakers = std::make_shared<const Sequences>(Sequences{{5}});
  EXPECT_FLOAT_EQ(penalties(params, history, 10)[5], 0);  // a breaker is never penalized
  params.dry_breakers = std::make_shared<const Sequences>(Sequences{{1, 2}, {1}, {}, {-3}, {99}});
  EXPECT_FLOAT_EQ(penalties(params, history, 10)[5], 1);  // the longer of those that start with 1
  params.dry_breakers = std::make_shared<const Sequences>(Sequences{{4}});
  EXPECT_FLOAT_EQ(penalties(params, history, 10)[5], 0);
}

TEST(Dry, PenaltyStaysFinite) {
  const SamplingParams params{.dry_multiplier = 100, .dry_base = 100, .dry_allowed_length = 1};
  const std::vector<float> result = penalties(params, std::vector<int32_t>(500, 3), 10);
  EXPECT_TRUE(std::isfinite(result[3]));
  EXPECT_GT(result[3], 1e30f);
}

// The definition, every earlier place compared token by token.
std::vector<double> reference(const SamplingParams& params, std::vector<int32_t> tokens, size_t vocab) {
  if (params.dry_penalty_last_n >= 0 && tokens.size() > static_cast<size_t>(params.dry_penalty_last_n))
    tokens.erase(tokens.begin(), tokens.end() - params.dry_penalty_last_n);
  std::vector<double> result(vocab, 0);
  const int64_t n = static_cast<int64_t>(tokens.size());
  int64_t limit = n;
  for (int64_t at = n - 1; at >= 0 && limit == n; --at) {
    int64_t longest = 0;
    for (const auto& breaker : *params.dry_breakers) {
      const int64_t size = static_cast<int64_t>(breaker.size());
      if (at + size <= n && std::equal(breaker.begin(), breaker.end(), tokens.begin() + at))
        longest = std::max(longest, size);
    }
    if (longest > 0) limit = n - at - longest;
  }
  if (n <= params.dry_allowed_length || limit < params.dry_allowed_length) return result;
  std::map<int32_t, int64_t> longest;
  for (int64_t end = 0; end + 1 < n; ++end) {  // matches that end at `end`
    int64_t length = 0;
    while (length < limit && end - length >= 0 &&
           tokens[static_cast<size_t>(end - length)] == tokens[static_cast<size_t>(n - 1 - length)])
      ++length;
    if (length < params.dry_allowed_length) continue;
    int64_t& known = longest[tokens[static_cast<size_t>(end + 1)]];
    known = std::max(known, length);
  }
  for (const auto& [id, length] : longest) {
    const auto& breakers = *params.dry_breakers;
    if (std::find(breakers.begin(), breakers.end(), std::vector<int32_t>{id}) != breakers.end()) continue;
    result[static_cast<size_t>(id)] =
        params.dry_multiplier * std::pow(params.dry_base, static_cast<double>(length - params.dry_allowed_length));
  }
  return result;
}

TEST(Dry, EqualsTheDefinition) {
  std::mt19937 random(8);
  for (int round = 0; round < 3000; ++round) {
    const int32_t vocab = 2 + static_cast<int32_t>(random() % 5);
    std::vector<int32_t> history(random() % 60);
    for (int32_t& id : history) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
    Sequences breakers;
    for (uint32_t i = random() % 3; i > 0; --i) {
      std::vector<int32_t>& breaker = breakers.emplace_back(1 + random() % 3);
      for (int32_t& id : breaker) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
    }
    const SamplingParams params{.dry_multiplier = 0.7,
                                .dry_base = 1.25,
                                .dry_allowed_length = static_cast<int64_t>(random() % 4),
                                .dry_penalty_last_n = random() % 2 ? -1 : 1 + static_cast<int64_t>(random() % 40),
                                .dry_breakers = std::make_shared<const Sequences>(breakers)};
    const std::vector<float> actual = penalties(params, history, static_cast<size_t>(vocab));
    const std::vector<double> expected = reference(params, history, static_cast<size_t>(vocab));
    for (size_t id = 0; id < actual.size(); ++id)
      ASSERT_NEAR(actual[id], expected[id], 1e-5 * expected[id]) << "round " << round << " token " << id;
  }
}

// Words by id; a text is written greedily with the longest word that fits.
struct Words {
  std::vector<std::string> words;
  mutable int tokenized = 0;

  BreakerVocabulary vocabulary() const {
    return {static_cast<int64_t>(words.size()), [this](int32_t id) { return words[static_cast<size_t>(id)]; },
            [this](std::string_view text) {
              ++tokenized;
              std::vector<int32_t> ids;
              while (!text.empty()) {
                int32_t best = -1;
                for (size_t i = 0; i < words.size(); ++i)
                  if (!words[i].empty() && text.starts_with(words[i]) &&
                      (best < 0 || words[i].size() > words[static_cast<size_t>(best)].size()))
                    best = static_cast<int32_t>(i);
                if (best < 0) return ids;
                ids.push_back(best);
                text.remove_prefix(words[static_cast<size_t>(best)].size());
              }
              return ids;
            }};
  }
};

TEST(DryBreakers, TokensThatHoldOrBeginTheText) {
  const Words words{{"a", "b", "c", "xab", "abc", "bc", "", "ca", "aab"}};
  const std::vector<std::string> one = {"b"};
  EXPECT_EQ(*dry_breakers(words.vocabulary(), one), (Sequences{{1}, {3}, {4}, {5}, {8}}));
  const std::vector<std::string> abc = {"abc"};
  EXPECT_EQ(*dry_breakers(words.vocabulary(), abc), (Sequences{{0, 5}, {3, 2}, {4}, {7, 5}, {8, 2}}));
  EXPECT_LE(words.tokenized, 2 + 0);  // each rest once
  const std::vector<std::string> both = {"b", "", "b"};
  EXPECT_EQ(*dry_breakers(words.vocabulary(), both), (Sequences{{1}, {3}, {4}, {5}, {8}}));
  EXPECT_TRUE(dry_breakers(words.vocabulary(), {})->empty());
}

// The word "aa" ends in both beginnings of "aaab".
TEST(DryBreakers, EveryOverlapOfAWord) {
  const Words words{{"a", "b", "aa"}};
  const std::vector<std::string> text = {"aaab"};
  EXPECT_EQ(*dry_breakers(words.vocabulary(), text), (Sequences{{0, 2, 1}, {2, 0, 1}, {2, 2, 1}}));
}

TEST(DryBreakers, AreBounded) {
  const Words words{{"a", "b"}};
  const std::vector<std::string> longest = {"b" + std::string(100, 'a')};
  const auto sequences = dry_breakers(words.vocabulary(), longest);
  ASSERT_EQ(sequences->size(), 1u);
  EXPECT_EQ((*sequences)[0].size(), 1 + kMaxBreakerTail);
  const std::vector<std::string> many(kMaxBreakers + 1, "a");
  const auto refused = dry_breakers(words.vocabulary(), many);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "dry_sequence_breakers has 65 texts, must have at most 64");
}

}  // namespace
}  // namespace vedette::sampling
