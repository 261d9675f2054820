// Which K/V blocks each sequence holds, per group. Block tables here are what Step::block_tables wants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_pool.h"
#include "ops/types.h"

namespace vedette::cache {

struct KvGroupLayout {
  int window = 0;        // tokens; 0 = full attention
  int64_t n_blocks = 0;  // in the pool
};

// One sequence's blocks. All tables cover the same positions; -1 where a sliding group has freed a block.
struct SequenceBlocks {
  std::vector<std::vector<int32_t>> tables;  // [group][position / kBlockTokens]
  int64_t covered_blocks() const { return tables.empty() ? 0 : static_cast<int64_t>(tables[0].size()); }
};

// The first block that a row at `next_position` may still read: position p sees keys in (p - window, p].
constexpr int64_t first_live_block(int window, int64_t next_position) {
  if (window <= 0) return 0;
  const int64_t first_key = next_position - window + 1;
  return first_key <= 0 ? 0 : first_key / ops::kBlockTokens;
}

constexpr int64_t blocks_of(int64_t tokens) {
  return (tokens + ops::kBlockTokens - 1) / ops::kBlockTokens;
}

// The most blocks of a group that one sequence of up to `tokens` tokens holds, run in steps of up to `chunk` rows.
constexpr int64_t most_blocks(int window, int64_t tokens, int64_t chunk) {
  const int64_t all = blocks_of(tokens);
  if (window <= 0) return all;
  // With d the whole blocks before next: keys from d - window + 1 to next + chunk - 1.
  const int64_t live = blocks_of(window - 1) + blocks_of(chunk - 1) + 1;
  return live < all ? live : all;
}

// Owner and thread: the engine thread.
class KvCache {
 public:
  explicit KvCache(std::span<const KvGroupLayout> groups);

  // Room for the tables of a sequence of up to `tokens` tokens, so that extending them allocates nothing.
  void prepare(SequenceBlocks& sequence, int64_t tokens) const;
  // Extends the tables to cover positions 0 .. tokens-1. All groups or none: false where blocks are short.
  bool reserve(SequenceBlocks& sequence, int64_t tokens);
  // Frees blocks of sliding groups that no row from next_position on can see. The window before the last whole block
  // stays, so that a prefix that ends there can be kept.
  void free_outside_window(SequenceBlocks& sequence, int64_t next_position);
  void release(SequenceBlocks& sequence);

  // Blocks of a group that the sequence holds.
  int64_t held(const SequenceBlocks& sequence, size_t group) const;
  // Of them, those that nobody else but the prefix cache holds.
  int64_t held_alone(const SequenceBlocks& sequence, size_t group) const;
  size_t n_groups() const { return groups_.size(); }
  int window(size_t group) const { return groups_[group].window; }
  const BlockPool& pool(size_t group) const { return pools_[group]; }
  BlockPool& pool(size_t group) { return pools_[group]; }

 private:
  std::vector<KvGroupLayout> groups_;
  std::vector<BlockPool> pools_;
};

}  // namespace vedette::cache
