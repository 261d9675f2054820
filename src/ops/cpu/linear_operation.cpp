#include "ops/cpu/linear_operation.h"

#include <algorithm>

#include "ops/cpu/program.h"

namespace vedette::ops::cpu {
namespace {

// A block of rows should stay in the second-level cache while the weights pass by.
constexpr int64_t kRowBlockBytes = 384 << 10;
constexpr int64_t kLeastRowBlock = 32;
// A chunk should last at least about this long; bytes of weights and multiplications per nanosecond of one core.
constexpr double kChunkNanoseconds = 3000;
constexpr double kBytesPerNanosecond = 10;
constexpr double kProductsPerNanosecond = 100;
constexpr int64_t kMostChunksPerThread = 16;

}  // namespace

void plan_linear(LinearOperation& o, int threads) {
  o.n_tiles = 0;
  int64_t bytes = 0;
  for (LinearPart& part : o.parts) {
    part.first_tile = o.n_tiles;
    o.n_tiles += packed_tiles(*part.matrix);
    bytes += packed_owned_bytes(*part.matrix) + packed_mapped_bytes(*part.matrix);
  }
  const int64_t cols = o.parts.empty() ? 1 : packed_cols(*o.parts[0].matrix);
  const int64_t row_bytes = std::max<int64_t>({1, o.prepared_stride, o.compute == Compute::kF32 ? cols * 4 : 0});
  const int64_t block = std::max(kLeastRowBlock, kRowBlockBytes / row_bytes);
  o.row_parts = (o.input.rows + block - 1) / block;
  const double products = static_cast<double>(o.n_tiles * kTileRows * cols) * static_cast<double>(o.input.rows);
  const double time = std::max(static_cast<double>(bytes) / kBytesPerNanosecond, products / kProductsPerNanosecond);
  // A multiple of the number of threads, so that undisturbed threads finish together.
  const int64_t wanted = static_cast<int64_t>(time / kChunkNanoseconds) / (o.row_parts * threads);
  o.tile_parts = threads * std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, kMostChunksPerThread / o.row_parts));
  o.tile_parts = std::clamp<int64_t>(o.tile_parts, 1, std::max<int64_t>(1, o.n_tiles));
}

void run_linear(const void* arguments, int64_t chunk, int thread) {
  const auto& o = *static_cast<const LinearOperation*>(arguments);
  // Consecutive chunks take the same tiles for the next rows: weights come from memory once.
  const int64_t tiles = chunk / o.row_parts;
  const int64_t rows = chunk % o.row_parts;
  const int64_t tile_begin = part_begin(o.n_tiles, o.tile_parts, tiles);
  const int64_t tile_end = part_begin(o.n_tiles, o.tile_parts, tiles + 1);
  const int64_t row_begin = part_begin(o.input.rows, o.row_parts, rows);
  const int64_t row_end = part_begin(o.input.rows, o.row_parts, rows + 1);
  MatmulInput input = o.input;
  input.values += row_begin * input.value_stride;
  if (input.rounded != nullptr) input.rounded += row_begin * input.value_stride;
  if (input.prepared != nullptr) input.prepared += row_begin * o.prepared_stride;
  input.rows = row_end - row_begin;
  for (const LinearPart& part : o.parts) {
    const int64_t count = packed_tiles(*part.matrix);
    const int64_t begin = std::max<int64_t>(0, tile_begin - part.first_tile);
    const int64_t end = std::min(count, tile_end - part.first_tile);
    if (begin >= end) continue;
    matmul(o.isa, o.compute, *part.matrix, input, begin, end, part.bias, part.out.row(row_begin), part.out.stride,
           o.scratch + thread * o.scratch_stride);
  }
}

void run_finish(const void* arguments, int64_t chunk, int) {
  const auto& o = *static_cast<const FinishOperation*>(arguments);
  const int64_t begin = chunk % o.runs_per_row() * FinishOperation::kColumns;
  const int64_t count = std::min(FinishOperation::kColumns, o.logits.cols - begin);
  o.kernels->finish_logits(o.logits.row(chunk / o.runs_per_row()) + begin, o.scale, o.softcap, count);
}

}  // namespace vedette::ops::cpu
