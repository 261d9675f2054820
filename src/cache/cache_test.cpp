#include <gtest/gtest.h>

#include <random>
#include <set>

#include "cache/block_pool.h"
#include "cache/kv_cache.h"

namespace vedette::cache {
namespace {

TEST(BlockPool, HandsOutEachBlockOnceAndTakesItBack) {
  BlockPool pool(3);
  std::set<int32_t> blocks;
  for (int i = 0; i < 3; ++i) blocks.insert(*pool.allocate());
  EXPECT_EQ(blocks, (std::set<int32_t>{0, 1, 2}));
  EXPECT_FALSE(pool.allocate().has_value());
  pool.release(1);
  EXPECT_EQ(pool.available(), 1);
  EXPECT_EQ(*pool.allocate(), 1);
}

TEST(BlockPool, ASharedBlockIsFreedWithItsLastReference) {
  BlockPool pool(1);
  const int32_t block = *pool.allocate();
  pool.add_reference(block);
  EXPECT_EQ(pool.references(block), 2);
  pool.release(block);
  EXPECT_EQ(pool.available(), 0);
  pool.release(block);
  EXPECT_EQ(pool.available(), 1);
  EXPECT_EQ(pool.references(block), 0);
}

TEST(KvCache, ReserveIsAllOrNothing) {
  const KvGroupLayout groups[] = {{0, 10}, {16, 2}};
  KvCache cache(groups);
  SequenceBlocks sequence;
  EXPECT_TRUE(cache.reserve(sequence, 33));  // two blocks of each
  EXPECT_EQ(cache.pool(0).available(), 8);
  EXPECT_EQ(cache.pool(1).available(), 0);
  EXPECT_TRUE(cache.reserve(sequence, 64));  // covered already
  EXPECT_FALSE(cache.reserve(sequence, 65));
  EXPECT_EQ(cache.pool(0).available(), 8);
  EXPECT_EQ(sequence.covered_blocks(), 2);
  cache.release(sequence);
  EXPECT_EQ(cache.pool(0).available(), 10);
  EXPECT_EQ(cache.pool(1).available(), 2);
  EXPECT_EQ(sequence.covered_blocks(), 0);
}

TEST(KvCache, TheWindowFreesOnlyWhatNoLaterRowSees) {
  constexpr int kWindow = 48;
  const KvGroupLayout groups[] = {{0, 100}, {kWindow, 100}};
  KvCache cache(groups);
  SequenceBlocks sequence;
  for (int64_t position = 0; position < 1000; ++position) {
    cache.free_outside_window(sequence, position);
    ASSERT_TRUE(cache.reserve(sequence, position + 1));
    for (int64_t p = 0; p <= position; ++p) {
      const auto block = static_cast<size_t>(p / ops::kBlockTokens);
      ASSERT_GE(sequence.tables[0][block], 0);
      if (p > position - kWindow) {
        ASSERT_GE(sequence.tables[1][block], 0) << position << " needs " << p;
      }
      // A block is gone as soon as its last position is out of sight of the first row after the last whole block.
      const int64_t last = (p / ops::kBlockTokens + 1) * ops::kBlockTokens - 1;
      if (last <= position - position % ops::kBlockTokens - kWindow) {
        ASSERT_LT(sequence.tables[1][block], 0) << position << " keeps " << p;
      }
    }
  }
  cache.release(sequence);
  EXPECT_EQ(cache.pool(1).available(), 100);
}

// most_blocks() is what admission counts with: no run of chunks may ever need more.
TEST(KvCache, MostBlocksBoundsEveryRun) {
  std::mt19937 random(11);
  for (int run = 0; run < 200; ++run) {
    const int window = static_cast<int>(random() % 100) + 1;
    const int64_t chunk = static_cast<int64_t>(random() % 90) + 1;
    const int64_t tokens = static_cast<int64_t>(random() % 600) + 1;
    const KvGroupLayout groups[] = {{window, most_blocks(window, tokens, chunk)}};
    KvCache cache(groups);
    SequenceBlocks sequence;
    for (int64_t done = 0; done < tokens;) {
      cache.free_outside_window(sequence, done);
      done = std::min(tokens, done + 1 + static_cast<int64_t>(random()) % chunk);
      ASSERT_TRUE(cache.reserve(sequence, done)) << window << " " << chunk << " " << tokens;
    }
  }
}

TEST(KvCache, RandomSequencesNeverShareABlock) {
  std::mt19937 random(3);
  const KvGroupLayout groups[] = {{0, 40}, {40, 20}};
  KvCache cache(groups);
  std::vector<SequenceBlocks> sequences(6);
  std::vector<int64_t> lengths(6, 0);
  for (int step = 0; step < 5000; ++step) {
    const size_t i = random() % sequences.size();
    if (random() % 20 == 0) {
      cache.release(sequences[i]);
      lengths[i] = 0;
    } else {
      cache.free_outside_window(sequences[i], lengths[i]);
      const int64_t more = static_cast<int64_t>(random() % 50) + 1;
      if (cache.reserve(sequences[i], lengths[i] + more)) lengths[i] += more;
    }
    for (size_t group = 0; group < 2; ++group) {
      std::set<int32_t> seen;
      int64_t held = 0;
      for (const SequenceBlocks& sequence : sequences) {
        if (sequence.tables.empty()) continue;
        for (const int32_t block : sequence.tables[group])
          if (block >= 0) {
            seen.insert(block);
            ++held;
          }
      }
      ASSERT_EQ(static_cast<int64_t>(seen.size()), held);
      ASSERT_EQ(held + cache.pool(group).available(), cache.pool(group).total());
    }
  }
}

}  // namespace
}  // namespace vedette::cache
