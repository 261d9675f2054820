// The prefix cache under random conversations against a model that remembers every text and what each block holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "cache/prefix_cache.h"
#include "cache/prefix_tree.h"

namespace vedette::cache {
namespace {

using Ids = std::vector<int32_t>;

struct Running {
  Ids ids;
  std::string scope;
  int64_t computed = 0;
  SequenceBlocks blocks;
};

class World {
 public:
  World(std::vector<KvGroupLayout> groups, int64_t max_tokens, uint64_t seed)
      : random_(seed), groups_(groups), blocks_(groups), prefixes_(blocks_, max_tokens), bounded_(max_tokens > 0) {
    for (const KvGroupLayout& group : groups) written_.emplace_back(static_cast<size_t>(group.n_blocks));
  }

  void step() {
    switch (random_() % 16) {
      case 0:
      case 1:
      case 6:
      case 7:
        arrive();
        break;
      case 2:
      case 3:
      case 4:
        leave();
        break;
      case 5:
        make_room();
        break;
      default:
        advance();
    }
    check_references();
  }

  void end() {
    while (!running_.empty()) leave();
    for (size_t group = 0; group < groups_.size(); ++group)
      ASSERT_EQ(blocks_.pool(group).available() + prefixes_.evictable(group), blocks_.pool(group).total());
    prefixes_.clear();
    for (size_t group = 0; group < groups_.size(); ++group)
      ASSERT_EQ(blocks_.pool(group).available(), blocks_.pool(group).total());
  }

  int64_t adopted() const { return adopted_; }
  int64_t evictions() const { return prefixes_.stats().evictions; }

 private:
  size_t below(size_t n) { return random_() % n; }

  // A beginning of some text there was, and something new of few different tokens.
  Ids some_text() {
    Ids ids;
    if (!texts_.empty() && below(4) != 0) {
      const Ids& one = texts_[below(texts_.size())].second;
      const Ids& other = texts_[below(texts_.size())].second;
      const Ids& old = one.size() > other.size() ? one : other;
      const size_t kept = below(2) == 0 ? old.size() : below(old.size() + 1);
      ids.assign(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(kept));
    }
    for (size_t more = 1 + below(60); more > 0; --more) ids.push_back(static_cast<int32_t>(below(10) == 0));
    if (ids.size() > 250) ids.resize(250);
    return ids;
  }

  int64_t longest_seen(const std::string& scope, const Ids& ids) {
    int64_t longest = 0;
    for (const auto& [of, text] : texts_)
      if (of == scope) longest = std::max(longest, common_prefix(text, ids));
    return longest;
  }

  void arrive() {
    if (running_.size() >= 3) return;
    Running sequence;
    sequence.ids = some_text();
    sequence.scope = below(3) == 0 ? "b" : "a";
    const int64_t seen = longest_seen(sequence.scope, sequence.ids);
    const PrefixMatch match = prefixes_.adopt(sequence.scope, sequence.ids, sequence.blocks);
    ASSERT_EQ(match.matched, seen);
    ASSERT_EQ(match.tokens % ops::kBlockTokens, 0);
    ASSERT_LE(match.tokens, seen);
    ASSERT_LT(match.tokens, std::ssize(sequence.ids));
    ASSERT_EQ(match.reason == MissReason::kCold, seen == 0);
    if (match.reason == MissReason::kDiffers) {
      ASSERT_FALSE(match.expected.empty());
      ASSERT_NE(match.expected[0], sequence.ids[static_cast<size_t>(seen)]);
      Ids known(sequence.ids.begin(), sequence.ids.begin() + seen);
      known.insert(known.end(), match.expected.begin(), match.expected.end());
      ASSERT_EQ(longest_seen(sequence.scope, known), std::ssize(known));
    }
    if (match.reason == MissReason::kNone || match.reason == MissReason::kDiffers) {
      ASSERT_EQ(match.tokens, std::min(seen, std::ssize(sequence.ids) - 1) / ops::kBlockTokens * ops::kBlockTokens);
    }
    sequence.computed = match.tokens;
    adopted_ += match.tokens;
    check_contents(sequence);
    running_.push_back(std::move(sequence));
  }

  // What a row at `computed` may read is there and was written for exactly this text.
  void check_contents(const Running& sequence) {
    for (size_t group = 0; group < groups_.size(); ++group) {
      const int64_t first = first_live_block(groups_[group].window, sequence.computed);
      for (int64_t index = first; index * ops::kBlockTokens < sequence.computed; ++index) {
        const int32_t block = sequence.blocks.tables[group][static_cast<size_t>(index)];
        ASSERT_GE(block, 0);
        const Ids& content = written_[group][static_cast<size_t>(block)];
        const int64_t end = std::min(sequence.computed, (index + 1) * ops::kBlockTokens);
        ASSERT_TRUE(std::ssize(content) >= end &&
                    std::equal(content.begin(), content.begin() + end, sequence.ids.begin()));
      }
    }
  }

  void advance() {
    if (running_.empty()) return;
    Running& sequence = running_[below(running_.size())];
    const int64_t left = std::ssize(sequence.ids) - sequence.computed;
    if (left == 0) return;
    const int64_t rows = below(2) == 0 ? left : 1 + static_cast<int64_t>(below(static_cast<size_t>(left)));
    const int64_t end = sequence.computed + rows;
    const int64_t more = blocks_of(end) - sequence.blocks.covered_blocks();
    if (!prefixes_.make_room(std::vector<int64_t>(groups_.size(), more))) return;
    ASSERT_TRUE(blocks_.reserve(sequence.blocks, end));
    write(sequence, end);
    sequence.computed = end;
    check_contents(sequence);
    if (below(2) == 0) insert(sequence);
    blocks_.free_outside_window(sequence.blocks, end);
  }

  void write(const Running& sequence, int64_t end) {
    for (size_t group = 0; group < groups_.size(); ++group)
      for (int64_t index = sequence.computed / ops::kBlockTokens; index * ops::kBlockTokens < end; ++index) {
        const int32_t block = sequence.blocks.tables[group][static_cast<size_t>(index)];
        ASSERT_EQ(blocks_.pool(group).references(block), 1) << "a shared block is written to";
        const int64_t until = std::min(end, (index + 1) * ops::kBlockTokens);
        written_[group][static_cast<size_t>(block)].assign(sequence.ids.begin(), sequence.ids.begin() + until);
      }
  }

  void insert(Running& sequence) {
    const auto kind = static_cast<Snapshot>(below(3));
    const Ids ids(sequence.ids.begin(), sequence.ids.begin() + sequence.computed);
    prefixes_.insert(sequence.scope, ids, sequence.blocks, kind);
    if (!ids.empty() && !bounded_) texts_.emplace_back(sequence.scope, ids);
    if (!ids.empty() && bounded_) note_bounded(sequence.scope, ids);
    check_contents(sequence);
  }

  // A bound may cut a text short; what was taken in is what a look-up finds.
  void note_bounded(const std::string& scope, const Ids& ids) {
    SequenceBlocks found;
    const PrefixMatch match = prefixes_.adopt(scope, ids, found);
    blocks_.release(found);
    ASSERT_GE(match.matched, longest_seen(scope, ids));
    if (match.matched > 0) texts_.emplace_back(scope, Ids(ids.begin(), ids.begin() + match.matched));
  }

  void leave() {
    if (running_.empty()) return;
    const size_t i = below(running_.size());
    if (below(4) != 0) insert(running_[i]);
    blocks_.release(running_[i].blocks);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // Exactly what is called evictable can be freed.
  void make_room() {
    const size_t group = below(groups_.size());
    const int64_t most = blocks_.pool(group).available() + prefixes_.evictable(group);
    std::vector<int64_t> needed(groups_.size(), 0);
    needed[group] = below(8) == 0 ? most + 1 : static_cast<int64_t>(below(static_cast<size_t>(most) / 2 + 1));
    ASSERT_EQ(prefixes_.make_room(needed), needed[group] <= most);
    ASSERT_GE(blocks_.pool(group).available(), std::min(most, needed[group]));
  }

  void check_references() {
    for (size_t group = 0; group < groups_.size(); ++group) {
      std::vector<int32_t> references(static_cast<size_t>(groups_[group].n_blocks), 0);
      for (const Running& sequence : running_) {
        if (sequence.blocks.tables.empty()) continue;
        for (const int32_t block : sequence.blocks.tables[group])
          if (block >= 0) ++references[static_cast<size_t>(block)];
      }
      int64_t alone = 0, unused = 0;
      const BlockPool& pool = blocks_.pool(group);
      for (size_t block = 0; block < references.size(); ++block) {
        const auto id = static_cast<int32_t>(block);
        alone += pool.kept(id) && references[block] == 0;
        references[block] += pool.kept(id);
        unused += references[block] == 0;
        ASSERT_EQ(pool.references(id), references[block]);
      }
      ASSERT_EQ(pool.kept_alone(), alone);
      ASSERT_EQ(pool.available(), unused);
    }
  }

  std::mt19937_64 random_;
  std::vector<KvGroupLayout> groups_;
  KvCache blocks_;
  PrefixCache prefixes_;
  bool bounded_;
  std::vector<Running> running_;
  std::vector<std::pair<std::string, Ids>> texts_;  // by scope
  std::vector<std::vector<Ids>> written_;           // [group, block]: the text up to the last token in it
  int64_t adopted_ = 0;
};

TEST(PrefixProperties, RandomConversations) {
  const std::vector<std::vector<KvGroupLayout>> layouts = {
      {{0, 24}},  {{0, 24}, {20, 14}},          {{0, 40}, {64, 20}},
      {{64, 24}}, {{0, 20}, {0, 30}, {33, 16}}, {{0, 300}, {64, 200}}};
  int64_t adopted = 0, evictions = 0;
  for (uint64_t run = 0; run < 90; ++run) {
    World world(layouts[run % layouts.size()], run % 3 == 2 ? 320 : 0, run);
    for (int step = 0; step < 1200; ++step) {
      world.step();
      if (::testing::Test::HasFatalFailure()) FAIL() << "run " << run << " step " << step;
    }
    adopted += world.adopted();
    evictions += world.evictions();
    world.end();
    if (::testing::Test::HasFatalFailure()) FAIL() << "run " << run;
  }
  EXPECT_GT(adopted, 100000);
  EXPECT_GT(evictions, 1000);
}

}  // namespace
}  // namespace vedette::cache
