// A pool of K/V block ids with reference counts. Plain bookkeeping: the blocks' memory belongs to the back end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vedette::cache {

// Owner and thread: the engine thread. A block is free at zero references; several owners share one by reference
// (prefixes), and whoever would write to a block with more than one takes a fresh one instead.
class BlockPool {
 public:
  explicit BlockPool(int64_t n_blocks);

  // A free block with one reference, the most recently released first (its memory is the warmest); none if empty.
  std::optional<int32_t> allocate();
  void add_reference(int32_t block);
  // Drops one reference; frees the block at the last.
  void release(int32_t block);

  int32_t references(int32_t block) const { return references_[static_cast<size_t>(block)]; }
  int64_t total() const { return static_cast<int64_t>(references_.size()); }
  int64_t available() const { return static_cast<int64_t>(free_.size()); }

 private:
  std::vector<int32_t> references_;  // by block
  std::vector<int32_t> free_;        // a stack
};

}  // namespace vedette::cache
