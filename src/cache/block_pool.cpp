#include "cache/block_pool.h"

namespace vedette::cache {

BlockPool::BlockPool(int64_t n_blocks)
    : references_(static_cast<size_t>(n_blocks), 0), kept_(static_cast<size_t>(n_blocks), false) {
  free_.reserve(static_cast<size_t>(n_blocks));
  for (int64_t block = n_blocks; block-- > 0;) free_.push_back(static_cast<int32_t>(block));
}

std::optional<int32_t> BlockPool::allocate() {
  if (free_.empty()) return std::nullopt;
  const int32_t block = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::add_reference(int32_t block) {
  if (++references_[static_cast<size_t>(block)] == 2 && kept(block)) --kept_alone_;
}

void BlockPool::release(int32_t block) {
  const int32_t left = --references_[static_cast<size_t>(block)];
  if (left == 0) free_.push_back(block);
  if (left == 1 && kept(block)) ++kept_alone_;
}

void BlockPool::keep(int32_t block) {
  kept_[static_cast<size_t>(block)] = true;
  ++references_[static_cast<size_t>(block)];
}

void BlockPool::give_up(int32_t block) {
  if (references(block) == 1) --kept_alone_;
  kept_[static_cast<size_t>(block)] = false;
  release(block);
}

}  // namespace vedette::cache
