// Memory on 64-byte boundaries; zeroed when made.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace vedette::ops::cpu {

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};

// n elements, or null when the system has no memory.
template <typename T>
using AlignedBuffer = std::unique_ptr<T[], FreeDeleter>;

template <typename T>
AlignedBuffer<T> make_aligned(size_t n) {
  const size_t bytes = (n * sizeof(T) + 63) / 64 * 64;
  void* p = std::aligned_alloc(64, bytes > 0 ? bytes : 64);
  if (p != nullptr) std::memset(p, 0, bytes);
  return AlignedBuffer<T>(static_cast<T*>(p));
}

}  // namespace vedette::ops::cpu
