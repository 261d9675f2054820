// Matrix products of one input with several matrices, as one operation for the pool; and the scaling of logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/cpu/matmul.h"
#include "ops/cpu/program_stages.h"

namespace vedette::ops::cpu {

struct LinearPart {
  const PackedMatrix* matrix = nullptr;
  const float* bias = nullptr;
  Rows out;
  int64_t first_tile = 0;  // among the tiles of all parts
};

// Chunks are rectangles of (tiles of all parts, rows). Their size is chosen for speed; no result depends on it. Where a
// chunk's results fit a thread's memory for them they are published (see Operation), else written in place at once.
struct LinearOperation {
  Isa isa = Isa::kPortable;
  Compute compute = Compute::kI8;
  MatmulInput input;
  int64_t prepared_stride = 0;
  std::span<LinearPart> parts;
  int64_t n_tiles = 0;
  int64_t tile_parts = 1;
  int64_t row_parts = 1;
  int64_t rows_per_part = 1;
  std::byte* scratch = nullptr;  // per thread
  int64_t scratch_stride = 0;
  float* results = nullptr;  // per thread, kResultFloats; null where results are not published
  static constexpr int64_t kResultFloats = 64 << 10;
  int64_t n_chunks() const { return tile_parts * row_parts; }
};

// Numbers the parts' tiles, chooses tile_parts and row_parts, and drops `results` where they do not fit.
void plan_linear(LinearOperation& operation, int threads);
void run_linear(const void* arguments, int64_t chunk, int thread);
void publish_linear(const void* arguments, int64_t chunk, int thread);

// logits = cap * tanh(logits * scale / cap), in runs of columns, because a vocabulary is wide.
struct FinishOperation {
  const Kernels* kernels;
  float scale, softcap;
  Rows logits;
  int64_t n_rows;
  static constexpr int64_t kColumns = 8192;
  int64_t runs_per_row() const { return (logits.cols + kColumns - 1) / kColumns; }
  int64_t n_chunks() const { return n_rows * runs_per_row(); }
};
void run_finish(const void* arguments, int64_t chunk, int thread);

}  // namespace vedette::ops::cpu
