#include "ops/cpu/linear_operation.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/cpu/program.h"

namespace vedette::ops::cpu {
namespace {

// A block of rows should stay in the second-level cache while the weights pass by.
constexpr int64_t kRowBlockBytes = 384 << 10;
constexpr int64_t kLeastRowBlock = 32;
// A chunk should last at least about this long: weights that come from memory in long runs come 15 % faster than in
// runs of 3 us. Bytes of weights and multiplications per nanosecond of one core.
constexpr double kChunkNanoseconds = 20000;
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
  // Whole blocks of the wide kernels.
  o.rows_per_part = round_up<int64_t>((o.input.rows + o.row_parts - 1) / o.row_parts, kWideBlock);
  o.row_parts = (o.input.rows + o.rows_per_part - 1) / o.rows_per_part;
  const double products = static_cast<double>(o.n_tiles * kTileRows * cols) * static_cast<double>(o.input.rows);
  const double time = std::max(static_cast<double>(bytes) / kBytesPerNanosecond, products / kProductsPerNanosecond);
  // A multiple of the number of threads, so that undisturbed threads finish together.
  const int64_t wanted = static_cast<int64_t>(time / kChunkNanoseconds) / (o.row_parts * threads);
  o.tile_parts = threads * std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, kMostChunksPerThread / o.row_parts));
  o.tile_parts = std::clamp<int64_t>(o.tile_parts, 1, std::max<int64_t>(1, o.n_tiles));
  const int64_t chunk_tiles = (o.n_tiles + o.tile_parts - 1) / o.tile_parts;
  if (chunk_tiles * kTileRows * o.rows_per_part > LinearOperation::kResultFloats) o.results = nullptr;
}

namespace {

struct Chunk {
  int64_t tile_begin, tile_end, row_begin, row_end;
};

// Consecutive chunks take the same tiles for the next rows: weights come from memory once.
Chunk chunk_of(const LinearOperation& o, int64_t chunk) {
  const int64_t tiles = chunk / o.row_parts, rows = chunk % o.row_parts;
  return {part_begin(o.n_tiles, o.tile_parts, tiles), part_begin(o.n_tiles, o.tile_parts, tiles + 1),
          rows * o.rows_per_part, std::min(o.input.rows, (rows + 1) * o.rows_per_part)};
}

// visit(part, its first tile and the one after its last, the floats of a row before them in the thread's results).
template <typename Visit>
void for_parts(const LinearOperation& o, const Chunk& chunk, Visit visit) {
  for (const LinearPart& part : o.parts) {
    const int64_t begin = std::max<int64_t>(0, chunk.tile_begin - part.first_tile);
    const int64_t end = std::min(packed_tiles(*part.matrix), chunk.tile_end - part.first_tile);
    if (begin < end) visit(part, begin, end, (part.first_tile + begin - chunk.tile_begin) * kTileRows);
  }
}

}  // namespace

void run_linear(const void* arguments, int64_t chunk, int thread) {
  const auto& o = *static_cast<const LinearOperation*>(arguments);
  const Chunk c = chunk_of(o, chunk);
  MatmulInput input = o.input;
  input.values += c.row_begin * input.value_stride;
  if (input.rounded != nullptr) input.rounded += c.row_begin * input.value_stride;
  if (input.prepared != nullptr) input.prepared += c.row_begin * o.prepared_stride;
  input.rows = c.row_end - c.row_begin;
  for_parts(o, c, [&](const LinearPart& part, int64_t begin, int64_t end, int64_t before) {
    const int64_t results_stride = (c.tile_end - c.tile_begin) * kTileRows;
    const MatmulOutput out = o.results != nullptr
                                 ? MatmulOutput{o.results + thread * LinearOperation::kResultFloats + before,
                                                results_stride, begin * kTileRows}
                                 : MatmulOutput{part.out.row(c.row_begin), part.out.stride};
    matmul(o.isa, o.compute, *part.matrix, input, begin, end, part.bias, out, o.scratch + thread * o.scratch_stride);
  });
}

void publish_linear(const void* arguments, int64_t chunk, int thread) {
  const auto& o = *static_cast<const LinearOperation*>(arguments);
  const Chunk c = chunk_of(o, chunk);
  const int64_t results_stride = (c.tile_end - c.tile_begin) * kTileRows;
  for_parts(o, c, [&](const LinearPart& part, int64_t begin, int64_t end, int64_t before) {
    const int64_t first = begin * kTileRows;
    const auto bytes =
        sizeof(float) * static_cast<size_t>(std::min(end * kTileRows, packed_rows(*part.matrix)) - first);
    const float* from = o.results + thread * LinearOperation::kResultFloats + before;
    for (int64_t row = c.row_begin; row < c.row_end; ++row, from += results_stride)
      std::memcpy(part.out.row(row) + first, from, bytes);
  });
}

void run_finish(const void* arguments, int64_t chunk, int) {
  const auto& o = *static_cast<const FinishOperation*>(arguments);
  const int64_t begin = chunk % o.runs_per_row() * FinishOperation::kColumns;
  const int64_t count = std::min(FinishOperation::kColumns, o.logits.cols - begin);
  o.kernels->finish_logits(o.logits.row(chunk / o.runs_per_row()) + begin, o.scale, o.softcap, count);
}

}  // namespace vedette::ops::cpu
