#include "ops/cpu/weight_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/checked.h"

namespace vedette::ops::cpu {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// Of a region; pages are taken from the system only when they are written.
constexpr size_t kRegionBytes = size_t{64} << 20;

// mmap aligns to small pages: what lies before the first huge page and behind the last is given back.
std::byte* map_huge(size_t bytes) {
  void* const mapped =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // a refusal costs speed alone
  return begin + before;
}

}  // namespace

WeightMemory::~WeightMemory() {
  for (const Region& region : regions_) munmap(region.data, region.size);
}

std::byte* WeightMemory::allocate(size_t bytes) {
  constexpr size_t kMost = size_t{1} << 62;
  if (bytes > kMost) return nullptr;
  const size_t needed = round_up<size_t>(std::max<size_t>(bytes, 1), kLine);
  if (regions_.empty() || regions_.back().size - used_ < needed) {
    const size_t size = round_up(std::max(needed, kRegionBytes), kHugePage);
    std::byte* const data = map_huge(size);
    if (data == nullptr) return nullptr;
    regions_.push_back({data, size});
    used_ = 0;
  }
  std::byte* const out = regions_.back().data + used_;
  used_ += needed;
  return out;
}

}  // namespace vedette::ops::cpu
