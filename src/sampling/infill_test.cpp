// The link "infill" against its rules, followed pair by pair in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "sampling/infill_vocabulary.h"
#include "sampling/links.h"

namespace vedette::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

using Words = std::vector<std::string>;

std::shared_ptr<const InfillVocabulary> vocabulary_of(const Words& words, const std::vector<int32_t>& ends) {
  return std::make_shared<const InfillVocabulary>(
      static_cast<int64_t>(words.size()), [&](int32_t id) { return std::string_view(words[static_cast<size_t>(id)]); },
      ends);
}

std::vector<Candidate> infilled(const Words& words, const std::vector<int32_t>& ends, std::vector<Candidate> candidates,
                                const History& history = {}) {
  SamplingParams params{.infill_vocabulary = vocabulary_of(words, ends)};
  const auto sampler = find_link("infill")->make(params, static_cast<int64_t>(words.size()));
  sampler->clone()->apply(candidates, history);
  return candidates;
}

std::vector<Candidate> all(const std::vector<float>& logits) {
  std::vector<Candidate> candidates;
  for (const float logit : logits) candidates.push_back({static_cast<int32_t>(candidates.size()), logit});
  return candidates;
}

std::vector<int32_t> ids_of(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& candidate : candidates)
    if (candidate.logit > -kInf) ids.push_back(candidate.id);
  return ids;
}

// Ids that are left, in ascending order.
std::vector<int32_t> by_the_rules(const Words& words, const std::vector<int32_t>& ends,
                                  const std::vector<Candidate>& candidates) {
  struct Item {
    int32_t id;
    double p;
    bool gone, end;
  };
  float best = -kInf;
  for (const Candidate& candidate : candidates) best = std::max(best, candidate.logit);
  double sum = 0, ending = 0;
  for (const Candidate& candidate : candidates) sum += std::exp(static_cast<double>(candidate.logit) - best);
  std::vector<Item> items;
  for (const auto& [id, logit] : candidates) {
    const bool end = std::ranges::find(ends, id) != ends.end();
    items.push_back({id, std::exp(static_cast<double>(logit) - best) / sum, logit == -kInf, end});
    if (end) ending += items.back().p;
  }
  std::vector<int32_t> left;
  if (3 * ending * static_cast<double>(items.size()) > 1 - ending) {
    for (const Item& item : items)
      if (item.end && !item.gone) left.push_back(item.id);
    return left;
  }
  std::ranges::stable_sort(items, [](const Item& a, const Item& b) { return a.p > b.p; });
  for (Item& a : items)
    for (Item& b : items) {
      const std::string &begin = words[static_cast<size_t>(a.id)], &whole = words[static_cast<size_t>(b.id)];
      if (&a == &b || a.gone || b.gone || begin.empty() || !whole.starts_with(begin)) continue;
      Item &winner = b.p > a.p ? b : a, &loser = b.p > a.p ? a : b;
      winner.p += loser.p;
      loser.p = 0;
      loser.gone = true;
    }
  std::erase_if(items, [](const Item& item) { return item.gone || (!item.end && item.p < 0.2); });
  const auto others = std::ranges::count_if(items, [](const Item& item) { return !item.end; });
  if (others == 0) return {ends.front()};
  double rest = 0;
  for (const Item& item : items) rest += item.p;
  for (const Item& item : items)
    if (item.end || item.p / rest >= 1.0 / static_cast<double>(others + 1)) left.push_back(item.id);
  std::ranges::sort(left);
  return left;
}

TEST(Infill, FollowsItsRules) {
  std::mt19937_64 random(7);
  size_t outcomes[3] = {};  // ends alone, one end where nothing is sure, text
  for (int round = 0; round < 4000; ++round) {
    const size_t n = 3 + random() % 40;
    Words words;
    std::vector<float> logits;
    for (size_t i = 0; i < n; ++i) {
      std::string word;
      for (size_t length = random() % 5; length > 0; --length) word += static_cast<char>('a' + random() % 2);
      words.push_back(word);
      const double spread = round % 2 == 0 ? 2 : 8;
      logits.push_back(random() % 9 == 0 ? -kInf
                                         : static_cast<float>(spread * static_cast<double>(random() % 10007) / 10007));
    }
    const std::vector<int32_t> ends = {static_cast<int32_t>(random() % n), static_cast<int32_t>(random() % n)};
    for (const int32_t id : ends) {
      words[static_cast<size_t>(id)].clear();
      logits[static_cast<size_t>(id)] -= random() % 3 == 0 ? 0.f : 12.f;
    }
    std::vector<Candidate> candidates = all(logits);
    std::erase_if(candidates, [&](const Candidate& candidate) { return random() % 8 == 0 && candidate.id > 0; });
    if (ids_of(candidates).empty()) continue;
    const std::vector<int32_t> wanted = by_the_rules(words, ends, candidates);
    const std::vector<Candidate> got = infilled(words, ends, candidates);
    ASSERT_EQ(ids_of(got), wanted) << "round " << round;
    const auto as_before = [&](const Candidate& candidate) {
      return candidate.logit == logits[static_cast<size_t>(candidate.id)];
    };
    EXPECT_TRUE(got.size() == 1 || std::ranges::all_of(got, as_before)) << "round " << round;
    const bool text =
        std::ranges::any_of(wanted, [&](int32_t id) { return std::ranges::find(ends, id) == ends.end(); });
    ++outcomes[text ? 2 : wanted.size() == 1 ? 1 : 0];
  }
  for (const size_t count : outcomes) EXPECT_GT(count, 50u);
}

TEST(Infill, TheBeginningOfAnotherJoinsTheLikelierOne) {
  // "re" and "return" together are sure, alone neither is; "x" is not.
  const Words words = {"", "re", "return", "x", "y", "z", "w", "v"};
  const std::vector<float> logits = {-20,
                                     std::log(0.17f),
                                     std::log(0.18f),
                                     std::log(0.13f),
                                     std::log(0.13f),
                                     std::log(0.13f),
                                     std::log(0.13f),
                                     std::log(0.13f)};
  EXPECT_EQ(ids_of(infilled(words, {0}, all(logits))), (std::vector<int32_t>{0, 2}));
}

TEST(Infill, NothingSureIsTheEndUnlessThatIsNotAllowed) {
  const Words words = {"", "a", "b", "c", "d", "e", "f", "g"};
  const std::vector<float> logits = {-30, 1, 1, 1.1f, 1, 1, 1, 1};
  EXPECT_EQ(ids_of(infilled(words, {0}, all(logits))), (std::vector<int32_t>{0}));
  std::vector<Candidate> without = all(logits);
  without.erase(without.begin());  // an earlier link dropped it
  EXPECT_EQ(ids_of(infilled(words, {0}, without)), (std::vector<int32_t>{0}));
  const uint32_t text_only[] = {~1u};
  EXPECT_EQ(ids_of(infilled(words, {0}, without, {.allowed = text_only})), (std::vector<int32_t>{3}));
  EXPECT_EQ(ids_of(infilled(words, {}, all(logits))), (std::vector<int32_t>{3}));
}

TEST(Infill, RunsOnlyWhereItIsNamedAndThenAlsoGreedily) {
  const auto named = [](const SamplingParams& params, bool greedy) {
    return std::ranges::any_of(chain_links(params, greedy),
                               [](const Link* link) { return std::string_view(link->name) == "infill"; });
  };
  EXPECT_FALSE(named({}, false));
  EXPECT_TRUE(named({.order = {"top_k", "infill"}}, false));
  EXPECT_TRUE(named({.order = {"top_k", "Infill"}}, true));
  EXPECT_FALSE(named({.mirostat = 2, .order = {"infill"}}, false));
  EXPECT_EQ(*order_of_letters("ki"), (std::vector<std::string>{"top_k", "infill"}));
}

}  // namespace
}  // namespace vedette::sampling
