// A pool of K/V block ids with reference counts. Plain bookkeeping: the blocks' memory belongs to the back end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vedette::cache {

// Owner and thread: the engine thread. A block is free at zero references; several owners share one by reference
// (prefixes), and only whole blocks are shared, so nobody writes to a shared one. One of the owners may be the prefix
// cache: blocks that it alone holds are counted, since they can be had back.
class BlockPool {
 public:
  explicit BlockPool(int64_t n_blocks);

  // A free block with one reference, the most recently released first (its memory is the warmest); none if empty.
  std::optional<int32_t> allocate();
  void add_reference(int32_t block);
  // Drops one reference; frees the block at the last.
  void release(int32_t block);

  // The prefix cache's reference to a block in use, at most one per block.
  void keep(int32_t block);
  void give_up(int32_t block);
  bool kept(int32_t block) const { return kept_[static_cast<size_t>(block)]; }

  int32_t references(int32_t block) const { return references_[static_cast<size_t>(block)]; }
  int64_t total() const { return static_cast<int64_t>(references_.size()); }
  int64_t available() const { return static_cast<int64_t>(free_.size()); }
  int64_t kept_alone() const { return kept_alone_; }

 private:
  std::vector<int32_t> references_;  // by block
  std::vector<bool> kept_;           // by block
  std::vector<int32_t> free_;        // a stack
  int64_t kept_alone_ = 0;           // blocks whose only reference is the prefix cache's
};

}  // namespace vedette::cache
