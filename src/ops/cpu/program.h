// Records a step as operations for the pool, without allocating once its memory has grown to size.
//
// Work that concerns one row at a time (norms, activations, sums, the preparation of rows for a product) is recorded
// as stages; stages that follow each other on the same rows become one operation, which runs all of them on a row
// before it takes the next. So a row passes the caches once and threads meet only where rows depend on each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "ops/cpu/pool.h"

namespace vedette::ops::cpu {

// Memory for argument records: handed out one after another, taken back all at once, kept for the next step.
class Arena {
 public:
  void* allocate(size_t bytes);  // aligned for any type
  template <typename T>
  T* make(const T& value) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T))) T(value);
  }
  template <typename T>
  std::span<T> make_array(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first = static_cast<T*>(allocate(sizeof(T) * n));
    for (size_t i = 0; i < n; ++i) new (first + i) T();
    return {first, n};
  }
  void clear();

 private:
  struct Block {
    std::unique_ptr<std::byte[]> data;
    size_t size = 0;
  };
  std::vector<Block> blocks_;
  size_t block_ = 0;
  size_t used_ = 0;
};

enum class RowSet : uint8_t { kAll, kLogits };

using RowFunction = void (*)(const void* arguments, int64_t row, int thread);

// Owned by the back end; the engine thread records, the pool's threads run. Valid until clear().
class Program {
 public:
  explicit Program(int threads) : threads_(threads) {}

  void clear();
  Arena& arena() { return arena_; }
  // run(arguments, row, thread) for each of n_rows rows. cost: rough nanoseconds per row; it sizes chunks.
  void add_rows(RowSet set, int64_t n_rows, RowFunction run, const void* arguments, double cost);
  void add(const Operation& operation);
  std::span<const Operation> operations() const { return operations_; }

 private:
  struct Stage;
  struct RowOperation;
  static void run_rows(const void* arguments, int64_t chunk, int thread);

  int threads_;
  Arena arena_;
  std::vector<Operation> operations_;
  RowOperation* open_ = nullptr;  // the last operation, if it is one of rows
};

// n items in `parts` nearly equal runs: where run i begins.
constexpr int64_t part_begin(int64_t n, int64_t parts, int64_t i) {
  return n * i / parts;
}

}  // namespace vedette::ops::cpu
