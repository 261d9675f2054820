#include "ops/cpu/program.h"

#include <algorithm>

namespace vedette::ops::cpu {
namespace {

constexpr size_t kArenaBlock = 64 << 10;
// A chunk of rows should last about this long: far more than claiming it costs, far less than an operation.
constexpr double kChunkNanoseconds = 1500;
constexpr int64_t kChunksPerThread = 8;

}  // namespace

void* Arena::allocate(size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const size_t size = std::max(kArenaBlock, bytes);
    blocks_.push_back({std::make_unique<std::byte[]>(size), size});
    used_ = 0;
  }
  void* place = blocks_[block_].data.get() + used_;
  used_ += bytes;
  return place;
}

void Arena::clear() {
  block_ = used_ = 0;
}

struct Program::Stage {
  RowFunction run = nullptr;
  const void* arguments = nullptr;
  Stage* next = nullptr;
};

struct Program::RowOperation {
  RowSet set = RowSet::kAll;
  int64_t n_rows = 0;
  int64_t n_chunks = 1;
  double cost = 0;
  Stage* first = nullptr;
  Stage* last = nullptr;
};

void Program::run_rows(const void* arguments, int64_t chunk, int thread) {
  const auto& operation = *static_cast<const RowOperation*>(arguments);
  const int64_t end = part_begin(operation.n_rows, operation.n_chunks, chunk + 1);
  for (int64_t row = part_begin(operation.n_rows, operation.n_chunks, chunk); row < end; ++row) {
    for (const Stage* stage = operation.first; stage != nullptr; stage = stage->next) {
      stage->run(stage->arguments, row, thread);
    }
  }
}

void Program::clear() {
  arena_.clear();
  operations_.clear();
  open_ = nullptr;
}

void Program::add_rows(RowSet set, int64_t n_rows, RowFunction run, const void* arguments, double cost) {
  if (n_rows <= 0) return;
  Stage* stage = arena_.make(Stage{run, arguments, nullptr});
  if (open_ == nullptr || open_->set != set) {
    open_ = arena_.make(RowOperation{set, n_rows, 1, 0, nullptr, nullptr});
    operations_.push_back({run_rows, open_, 1});
  }
  if (open_->first == nullptr) {
    open_->first = stage;
  } else {
    open_->last->next = stage;
  }
  open_->last = stage;
  open_->cost += cost;
  const double total = open_->cost * static_cast<double>(n_rows);
  const int64_t most = std::min<int64_t>(n_rows, threads_ * kChunksPerThread);
  open_->n_chunks = std::clamp<int64_t>(static_cast<int64_t>(total / kChunkNanoseconds), 1, most);
  operations_.back().n_chunks = open_->n_chunks;
}

void Program::add(const Operation& operation) {
  open_ = nullptr;
  if (operation.n_chunks > 0) operations_.push_back(operation);
}

}  // namespace vedette::ops::cpu
