#include "cache/prefix_cache.h"

#include <gtest/gtest.h>

#include <numeric>

namespace vedette::cache {
namespace {

using Ids = std::vector<int32_t>;

// `n` ids from `first` on.
Ids run_of(int64_t n, int32_t first = 0) {
  Ids ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PrefixCaches : public ::testing::Test {
 protected:
  void open(std::vector<KvGroupLayout> groups, int64_t max_tokens = 0) {
    prefixes_.reset();
    blocks_ = std::make_unique<KvCache>(groups);
    prefixes_ = std::make_unique<PrefixCache>(*blocks_, max_tokens);
  }
  // A request that computes all of `ids` and leaves.
  PrefixMatch serve(const Ids& ids, Snapshot snapshot = Snapshot::kTurn, const char* scope = "") {
    SequenceBlocks sequence;
    PrefixMatch match = prefixes_->adopt(scope, ids, sequence);
    EXPECT_TRUE(blocks_->reserve(sequence, std::ssize(ids)));
    blocks_->free_outside_window(sequence, std::ssize(ids));
    prefixes_->insert(scope, ids, sequence, snapshot);
    blocks_->release(sequence);
    return match;
  }
  PrefixMatch look(const Ids& ids, const char* scope = "") {
    SequenceBlocks sequence;
    PrefixMatch match = prefixes_->adopt(scope, ids, sequence);
    blocks_->release(sequence);
    return match;
  }

  std::unique_ptr<KvCache> blocks_;
  std::unique_ptr<PrefixCache> prefixes_;
};

TEST_F(PrefixCaches, WholeBlocksAreReusedAndTokensAreCompared) {
  open({{0, 100}});
  EXPECT_EQ(serve(run_of(100)).reason, MissReason::kCold);
  EXPECT_EQ(prefixes_->stats().tokens, 96);
  // The next turn: everything before and some more.
  const PrefixMatch next = look(run_of(130));
  EXPECT_EQ(next.tokens, 96);
  EXPECT_EQ(next.matched, 100);
  EXPECT_EQ(next.reason, MissReason::kNone);
  // The same prompt: its last token is computed again.
  EXPECT_EQ(look(run_of(96)).tokens, 64);
  EXPECT_EQ(look(run_of(96)).reason, MissReason::kNone);
  EXPECT_EQ(look(run_of(97)).tokens, 96);
  EXPECT_EQ(look({5}).reason, MissReason::kCold);
  EXPECT_EQ(look({0}).matched, 1);
}

TEST_F(PrefixCaches, AMissNamesTheFirstTokenThatDiffered) {
  open({{0, 100}});
  serve(run_of(100));
  PrefixMatch match = look(run_of(70) + Ids{999, 1, 2});
  EXPECT_EQ(match.tokens, 64);
  EXPECT_EQ(match.matched, 70);
  EXPECT_EQ(match.reason, MissReason::kDiffers);
  EXPECT_EQ(match.expected, run_of(8, 70));
  // In the tail that fills no block, and across the end of a block.
  EXPECT_EQ(look(run_of(98) + Ids{999}).expected, run_of(2, 98));
  EXPECT_EQ(look(run_of(90) + Ids{999}).expected, run_of(8, 90));
  EXPECT_EQ(look(run_of(96) + Ids{999}).expected, run_of(4, 96));
  // Of several texts the one used last.
  serve(run_of(70) + run_of(40, 500));
  EXPECT_EQ(look(run_of(70) + Ids{999}).expected, run_of(8, 500));
  look(run_of(100));
  EXPECT_EQ(look(run_of(70) + Ids{999}).expected, run_of(8, 70));
}

TEST_F(PrefixCaches, ScopesShareNothing) {
  open({{0, 100}});
  serve(run_of(100), Snapshot::kTurn, "one");
  EXPECT_EQ(look(run_of(100), "two").reason, MissReason::kCold);
  EXPECT_EQ(look(run_of(70) + Ids{999}, "two").expected, Ids{});
  EXPECT_EQ(look(run_of(100), "one").tokens, 96);
}

TEST_F(PrefixCaches, ASlidingGroupNeedsItsSnapshot) {
  open({{0, 100}, {64, 100}});
  serve(run_of(320), Snapshot::kNone);
  PrefixMatch match = look(run_of(400));
  EXPECT_EQ(match.tokens, 0);
  EXPECT_EQ(match.matched, 320);
  EXPECT_EQ(match.reason, MissReason::kWindow);
  EXPECT_EQ(blocks_->pool(1).available(), 100);

  serve(run_of(320), Snapshot::kTurn);
  EXPECT_EQ(blocks_->pool(1).available(), 98);  // keys 257 to 319
  SequenceBlocks sequence;
  EXPECT_EQ(prefixes_->adopt("", run_of(400), sequence).tokens, 320);
  EXPECT_EQ(sequence.tables[0].size(), 10u);
  EXPECT_LT(sequence.tables[1][7], 0);
  EXPECT_GE(sequence.tables[1][8], 0);
  blocks_->release(sequence);
  // Parting before the snapshot: the full group's blocks alone are of no use.
  EXPECT_EQ(look(run_of(310) + Ids{999}).reason, MissReason::kWindow);
}

TEST_F(PrefixCaches, LeastRecentlyUsedLeavesGoFirst) {
  open({{0, 30}});
  serve(run_of(320));
  serve(run_of(320, 1000));
  serve(run_of(320, 2000));
  look(run_of(320));  // used again
  EXPECT_EQ(blocks_->pool(0).available(), 0);
  EXPECT_EQ(prefixes_->evictable(0), 30);
  const int64_t three[] = {3};
  EXPECT_TRUE(prefixes_->make_room(three));
  EXPECT_EQ(blocks_->pool(0).available(), 3);
  const PrefixMatch match = look(run_of(330, 1000));
  EXPECT_EQ(match.tokens, 224);
  EXPECT_EQ(match.matched, 320);  // still known
  EXPECT_EQ(match.reason, MissReason::kEvicted);
  EXPECT_EQ(look(run_of(330)).tokens, 320);
  EXPECT_EQ(look(run_of(330, 2000)).tokens, 320);
  EXPECT_EQ(prefixes_->stats().evictions, 3);
}

TEST_F(PrefixCaches, WhatASequenceSharesIsNotFreed) {
  open({{0, 10}});
  serve(run_of(320));
  SequenceBlocks sequence;
  prefixes_->adopt("", run_of(200), sequence);  // six blocks
  EXPECT_EQ(prefixes_->evictable(0), 4);
  const int64_t five[] = {5};
  EXPECT_FALSE(prefixes_->make_room(five));
  EXPECT_EQ(blocks_->pool(0).available(), 4);
  blocks_->release(sequence);
  EXPECT_EQ(prefixes_->evictable(0), 6);
  EXPECT_TRUE(prefixes_->make_room(five));
}

// Two sequences that computed the same text at once: the second one's copy goes back to the pool.
TEST_F(PrefixCaches, EqualBlocksAreHeldOnce) {
  open({{0, 20}});
  SequenceBlocks first, second;
  ASSERT_TRUE(blocks_->reserve(first, 200));
  ASSERT_TRUE(blocks_->reserve(second, 200));
  prefixes_->insert("", run_of(200), first, Snapshot::kNone);
  prefixes_->insert("", run_of(200), second, Snapshot::kNone);
  EXPECT_EQ(blocks_->pool(0).available(), 20 - 8);
  EXPECT_TRUE(std::equal(first.tables[0].begin(), first.tables[0].begin() + 6, second.tables[0].begin()));
  EXPECT_NE(first.tables[0][6], second.tables[0][6]);
  blocks_->release(first);
  blocks_->release(second);
  EXPECT_EQ(prefixes_->evictable(0), 6);
}

TEST_F(PrefixCaches, BoundedInTokens) {
  open({{0, 100}}, 320);
  serve(run_of(256));
  serve(run_of(128, 1000));
  EXPECT_EQ(prefixes_->stats().tokens, 320);
  EXPECT_EQ(look(run_of(300, 1000)).tokens, 128);
  EXPECT_EQ(look(run_of(300)).tokens, 192);
  serve(run_of(2000, 5000));  // longer than the bound: its beginning
  EXPECT_EQ(prefixes_->stats().tokens, 320);
  EXPECT_EQ(look(run_of(2001, 5000)).tokens, 320);
}

// A long prompt's ladder of snapshots does not push out the turns of other conversations.
TEST_F(PrefixCaches, LadderSnapshotsGoBeforeTurns) {
  open({{0, 200}, {64, 12}});
  serve(run_of(320, 5000), Snapshot::kTurn);
  SequenceBlocks sequence;
  for (int64_t tokens = 128; tokens <= 1280; tokens += 128) {
    const int64_t needed[] = {4, 4};
    ASSERT_TRUE(prefixes_->make_room(needed));
    ASSERT_TRUE(blocks_->reserve(sequence, tokens));
    prefixes_->insert("", run_of(tokens), sequence, Snapshot::kLadder);
    blocks_->free_outside_window(sequence, tokens);
  }
  blocks_->release(sequence);
  EXPECT_EQ(look(run_of(330, 5000)).tokens, 320);
  EXPECT_EQ(look(run_of(1281)).tokens, 1280);
}

// The last whole block's window outlives a step that goes past it.
TEST_F(PrefixCaches, ASnapshotIsThereAtEveryLength) {
  for (const int window : {1, 20, 32, 64, 100})
    for (int64_t tokens = 32; tokens < 300; ++tokens) {
      open({{0, 20}, {window, 20}});
      SequenceBlocks sequence;
      for (int64_t done = 1; done <= tokens; ++done) {
        ASSERT_TRUE(blocks_->reserve(sequence, done));
        blocks_->free_outside_window(sequence, done);
      }
      prefixes_->insert("", run_of(tokens), sequence, Snapshot::kTurn);
      blocks_->release(sequence);
      ASSERT_EQ(look(run_of(tokens + 1)).tokens, tokens / 32 * 32) << window;
    }
}

TEST_F(PrefixCaches, AfterClearEverythingIsFree) {
  open({{0, 100}, {64, 50}});
  serve(run_of(1000));
  serve(run_of(500) + run_of(500, 7), Snapshot::kTurn, "other");
  prefixes_->clear();
  EXPECT_EQ(blocks_->pool(0).available(), 100);
  EXPECT_EQ(blocks_->pool(1).available(), 50);
  EXPECT_EQ(prefixes_->stats().entries, 0);
  EXPECT_EQ(look(run_of(1000)).reason, MissReason::kCold);
}

// A path of a million tokens is torn down without recursion, and what is known of evicted texts stays bounded.
TEST_F(PrefixCaches, DeepPathsAndManyTexts) {
  open({{0, 32000}});
  serve(run_of(1'000'000));
  EXPECT_EQ(prefixes_->stats().entries, 31250);
  prefixes_->clear();
  open({{0, 4}});
  for (int32_t i = 0; i < 3000; ++i) {
    const int64_t all[] = {4};
    ASSERT_TRUE(prefixes_->make_room(all));
    serve(run_of(100, i * 7));
  }
  EXPECT_LE(prefixes_->stats().entries, 4);
  EXPECT_EQ(look(run_of(100, 0)).reason, MissReason::kCold);  // forgotten
}

}  // namespace
}  // namespace vedette::cache
