#include "cache/kv_cache.h"

#include <algorithm>

namespace vedette::cache {

KvCache::KvCache(std::span<const KvGroupLayout> groups) : groups_(groups.begin(), groups.end()) {
  for (const KvGroupLayout& group : groups_) pools_.emplace_back(group.n_blocks);
}

void KvCache::prepare(SequenceBlocks& sequence, int64_t tokens) const {
  sequence.tables.resize(groups_.size());
  for (std::vector<int32_t>& table : sequence.tables) table.reserve(static_cast<size_t>(blocks_of(tokens)));
}

bool KvCache::reserve(SequenceBlocks& sequence, int64_t tokens) {
  sequence.tables.resize(groups_.size());
  const int64_t more = blocks_of(tokens) - sequence.covered_blocks();
  if (more <= 0) return true;
  for (const BlockPool& pool : pools_)
    if (pool.available() < more) return false;
  for (size_t group = 0; group < groups_.size(); ++group)
    for (int64_t i = 0; i < more; ++i) sequence.tables[group].push_back(*pools_[group].allocate());
  return true;
}

void KvCache::free_outside_window(SequenceBlocks& sequence, int64_t next_position) {
  next_position -= next_position % ops::kBlockTokens;
  for (size_t group = 0; group < sequence.tables.size(); ++group) {
    std::vector<int32_t>& table = sequence.tables[group];
    const int64_t live =
        std::min(first_live_block(groups_[group].window, next_position), static_cast<int64_t>(table.size()));
    // Freed blocks are a prefix of the table, so going down stops at the first one met.
    for (int64_t block = live; block-- > 0 && table[static_cast<size_t>(block)] >= 0;) {
      pools_[group].release(table[static_cast<size_t>(block)]);
      table[static_cast<size_t>(block)] = -1;
    }
  }
}

int64_t KvCache::held(const SequenceBlocks& sequence, size_t group) const {
  if (sequence.tables.empty()) return 0;
  const std::vector<int32_t>& table = sequence.tables[group];
  // Freed blocks are a prefix.
  const auto first = std::partition_point(table.begin(), table.end(), [](int32_t block) { return block < 0; });
  return table.end() - first;
}

int64_t KvCache::held_alone(const SequenceBlocks& sequence, size_t group) const {
  if (sequence.tables.empty()) return 0;
  const BlockPool& pool = pools_[group];
  return std::count_if(sequence.tables[group].begin(), sequence.tables[group].end(), [&](int32_t block) {
    return block >= 0 && pool.references(block) == (pool.kept(block) ? 2 : 1);
  });
}

void KvCache::release(SequenceBlocks& sequence) {
  for (size_t group = 0; group < sequence.tables.size(); ++group) {
    for (const int32_t block : sequence.tables[group])
      if (block >= 0) pools_[group].release(block);
    sequence.tables[group].clear();
  }
}

}  // namespace vedette::cache
