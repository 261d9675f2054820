// The driver: walks tiles and blocks of rows, and hands each to a kernel.
#include "ops/cpu/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/float16.h"
#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

// Rows that stay in the second-level cache while the tiles pass by; no fewer than every wide kernel takes. Wide kernels
// without panels go over rows once for kWideTiles tiles, slowly enough for the third level, and unpack less often.
constexpr size_t kRowPassBytes = size_t{384} << 10;
constexpr size_t kWideRowPassBytes = size_t{1536} << 10;
constexpr int64_t kLeastRowPass = 2 * kWideBlock;

int64_t rows_of_pass(const WideKernel& wide, size_t row_bytes) {
  const size_t bytes = wide.run != nullptr && wide.panel_bytes == 0 ? kWideRowPassBytes : kRowPassBytes;
  const int64_t least = std::max<int64_t>(kLeastRowPass, wide.least_rows);
  return round_up<int64_t>(std::max(static_cast<int64_t>(bytes / row_bytes), least), kWideBlock);
}

// Bytes of kWideTiles unpacked tiles.
size_t unpacked_bytes(const WideKernel& wide, int64_t groups) {
  return kWideTiles * static_cast<size_t>(groups) * wide.tile_bytes;
}

// Source rows of a product: where row r of the operand begins.
struct RowSource {
  const std::byte* first = nullptr;
  size_t stride = 0;
  size_t bytes = 0;  // that a product reads of a row
};

RowSource row_source(const PackedMatrix& matrix, Compute compute, const MatmulInput& input) {
  if (compute == Compute::kF32 || is_float(matrix.kind)) {
    const float* values = is_float(matrix.kind) && compute == Compute::kI8 ? input.rounded : input.values;
    return {reinterpret_cast<const std::byte*>(values), static_cast<size_t>(input.value_stride) * sizeof(float),
            static_cast<size_t>(matrix.cols) * sizeof(float)};
  }
  const size_t bytes = prepared_row_bytes(compute, matrix.cols);
  return {input.prepared, bytes, bytes};
}

struct Output {
  const float* bias = nullptr;
  MatmulOutput out;
  int64_t n_outputs = 0;

  // result[row][output] of n_tiles tiles from `tile` on, a row's floats result_stride apart from the next one's.
  void write(const float* result, int64_t result_stride, int64_t first_row, int64_t n_rows, int64_t tile,
             int64_t n_tiles) const {
    const int64_t first = tile * kTileRows;
    const int64_t n = std::min(n_tiles * kTileRows, n_outputs - first);
    for (int64_t r = 0; r < n_rows; ++r) {
      float* to = out.data + (first_row + r) * out.stride + (first - out.first);
      const float* from = result + r * result_stride;
      if (bias != nullptr) {
        for (int64_t i = 0; i < n; ++i) to[i] = from[i] + bias[first + i];
      } else if (n == kTileRows) {
        std::memcpy(to, from, kTileRows * sizeof(float));  // of a constant size: no call
      } else {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
      }
    }
  }
};

struct Product {
  const KernelSet& kernels;
  RowSource source;
  Output output;

  // Rows [begin, end) against the tile in `view`.
  void tile(const TileView& view, int64_t tile, int64_t begin, int64_t end) const {
    alignas(64) float result[kMaxRowBlock * kTileRows];
    const std::byte* rows[kMaxRowBlock];
    for (int64_t row = begin; row < end; row += kMaxRowBlock) {
      const int n = static_cast<int>(std::min<int64_t>(kMaxRowBlock, end - row));
      const RowKernel& block = kernels.block[n - 1];
      for (int r = 0; r < block.rows; ++r)
        rows[r] = source.first + static_cast<size_t>(row + std::min(r, n - 1)) * source.stride;
      block.kernel(view, rows, result);
      output.write(result, kTileRows, row, n, tile, 1);
    }
  }

  // A wide block's first row: the last block overlaps the one before where rows are left over, and what it writes twice
  // is the same.
  static int64_t wide_row(int64_t row, int64_t end) { return std::min<int64_t>(row, end - kWideBlock); }

  // The panels of rows [begin, end), kWideBlock or more.
  void fill_panels(int64_t groups, int64_t begin, int64_t end, std::byte* panels) const {
    if (kernels.wide.panel_bytes == 0) return;
    for (int64_t row = begin; row < end; row += kWideBlock) {
      kernels.wide.fill_panel(source.first + static_cast<size_t>(wide_row(row, end)) * source.stride, source.stride,
                              groups, panels);
      panels += static_cast<size_t>(groups) * kernels.wide.panel_bytes;
    }
  }

  // Those rows against n_tiles tiles; `bytes` takes the unpacked tiles.
  void wide(const TileView& first_view, int64_t tile, int64_t n_tiles, int64_t begin, int64_t end, std::byte* bytes,
            const std::byte* panels) const {
    alignas(64) float result[kWideBlock * kWideTiles * kTileRows];
    const int64_t result_stride = n_tiles * kTileRows;
    TileView view = first_view;
    for (int64_t t = 0; t < n_tiles; ++t) {
      kernels.wide.unpack(view, bytes + static_cast<size_t>(t * view.groups) * kernels.wide.tile_bytes);
      view.planes += view.plane_bytes;
      view.scales += view.scale_bytes;
    }
    const size_t panel_bytes = static_cast<size_t>(view.groups) * kernels.wide.panel_bytes;
    for (int64_t row = begin; row < end; row += kWideBlock, panels += panel_bytes) {
      const std::byte* rows =
          panel_bytes > 0 ? panels : source.first + static_cast<size_t>(wide_row(row, end)) * source.stride;
      kernels.wide.run(first_view, bytes, static_cast<int>(n_tiles), rows, source.stride, result, result_stride);
      output.write(result, result_stride, wide_row(row, end), kWideBlock, tile, n_tiles);
    }
  }

  bool is_wide(int64_t rows) const { return kernels.wide.run != nullptr && rows >= kernels.wide.least_rows; }

  // One row against kTileRun tiles.
  void run(const TileView& view, int64_t tile, int64_t row) const {
    alignas(64) float result[kTileRun * kTileRows];
    const std::byte* rows[1] = {source.first + static_cast<size_t>(row) * source.stride};
    kernels.run(view, rows, result);
    for (int t = 0; t < kTileRun; ++t) output.write(result + t * kTileRows, kTileRows, row, 1, tile + t, 1);
  }
};

TileView view_of(const PackedMatrix& matrix) {
  TileView view;
  view.plane_bytes = matrix.plane_bytes;
  view.scale_bytes = matrix.scale_bytes;
  view.groups = matrix.groups;
  view.cols = matrix.cols;
  view.group_shift = matrix.group_shift;
  view.side = matrix.side;
  return view;
}

void run_packed(const Product& product, const PackedMatrix& matrix, int64_t rows, int64_t tile_begin, int64_t tile_end,
                std::byte* scratch) {
  TileView view = view_of(matrix);
  const int64_t pass = rows_of_pass(product.kernels.wide, product.source.bytes);
  std::byte* panels = scratch + unpacked_bytes(product.kernels.wide, matrix.groups);
  for (int64_t begin = 0; begin < rows; begin += pass) {
    const int64_t end = std::min(rows, begin + pass);
    if (product.is_wide(end - begin)) product.fill_panels(matrix.groups, begin, end, panels);
    for (int64_t tile = tile_begin; tile < tile_end;) {
      view.planes = matrix.planes + static_cast<size_t>(tile) * matrix.plane_bytes;
      view.scales = matrix.scales + static_cast<size_t>(tile) * matrix.scale_bytes;
      if (end - begin == 1 && product.kernels.run != nullptr && tile + kTileRun <= tile_end) {
        product.run(view, tile, begin);
        tile += kTileRun;
      } else if (product.is_wide(end - begin)) {
        const int64_t n_tiles = std::min<int64_t>(kWideTiles, tile_end - tile);
        product.wide(view, tile, n_tiles, begin, end, scratch, panels);
        tile += n_tiles;
      } else {
        product.tile(view, tile, begin, end);
        ++tile;
      }
    }
  }
}

// Scratch that holds a packed tile.
size_t in_place_bytes(const PackedMatrix& matrix) {
  return matrix.in_place ? round_up<size_t>(matrix.plane_bytes + matrix.scale_bytes, 64) : 0;
}

// In place: each tile is packed into scratch and then run as any other.
void run_in_place(const Product& product, const PackedMatrix& matrix, int64_t rows, int64_t tile_begin,
                  int64_t tile_end, std::byte* scratch) {
  TileView view = view_of(matrix);
  view.planes = scratch;
  view.scales = scratch + matrix.plane_bytes;
  std::byte* bytes = scratch + in_place_bytes(matrix);
  std::byte* panels = bytes + unpacked_bytes(product.kernels.wide, matrix.groups);
  const int64_t pass = rows_of_pass(product.kernels.wide, product.source.bytes);
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    pack_tile(matrix, matrix.stored, tile, scratch, scratch + matrix.plane_bytes);
    for (int64_t begin = 0; begin < rows; begin += pass) {
      const int64_t end = std::min(rows, begin + pass);
      if (product.is_wide(end - begin)) {
        product.fill_panels(matrix.groups, begin, end, panels);
        product.wide(view, tile, 1, begin, end, bytes, panels);
      } else {
        product.tile(view, tile, begin, end);
      }
    }
  }
}

uint32_t field(const std::byte* data, int shift, int bits) {
  return (static_cast<uint32_t>(*data) >> shift) & ((1u << bits) - 1);
}

// The integer of byte `b` of packed step j.
int packed_integer(const std::byte* group, int bits, int j, int b) {
  const std::byte* upper = group + (bits < 4 ? 128 : 256) + b;
  switch (bits) {
    case 2:
      return static_cast<int>(field(group + 64 * (j / 4) + b, 2 * (j % 4), 2));
    case 3:
      return static_cast<int>(field(group + 64 * (j / 4) + b, 2 * (j % 4), 2) | field(upper, j, 1) << 2);
    case 4:
      return static_cast<int>(field(group + 64 * (j / 2) + b, 4 * (j % 2), 4));
    case 5:
      return static_cast<int>(field(group + 64 * (j / 2) + b, 4 * (j % 2), 4) | field(upper, j, 1) << 4);
    case 6:
      return static_cast<int>(field(group + 64 * (j / 2) + b, 4 * (j % 2), 4) |
                              field(upper + 64 * (j / 4), 2 * (j % 4), 2) << 4);
    default:
      return static_cast<int>(group[64 * j + b]);
  }
}

StepScale packed_scale(const PackedMatrix& matrix, const std::byte* scales, int64_t k, int lane) {
  if (matrix.form == ScaleForm::kPlain) {
    const int64_t at = (k >> (5 + matrix.group_shift)) * kTileRows * (matrix.has_offset ? 2 : 1) + lane;
    return {load_element(matrix.side, scales, at),
            matrix.has_offset ? load_element(matrix.side, scales, at + kTileRows) : 0.0f};
  }
  const size_t record_bytes = super_scale_bytes(matrix.form, matrix.has_offset, matrix.step);
  const std::byte* record = scales + static_cast<size_t>(k / kSuperBlock) * record_bytes;
  const bool pairs = matrix.has_offset && matrix.form == ScaleForm::kSuperUnsigned;
  const std::byte* small =
      record + (matrix.has_offset ? 64 : 32) + k % kSuperBlock / matrix.step * (pairs ? 32 : 16) + lane;
  const float d = load_element(DType::kF16, record, lane);
  if (!matrix.has_offset) return {d * static_cast<float>(static_cast<int8_t>(*small)), 0};
  const float dmin = load_element(DType::kF16, record + 32, lane);
  const auto both = static_cast<int>(*small);
  if (pairs) return {d * static_cast<float>(both), -(dmin * static_cast<float>(static_cast<int>(small[16])))};
  return {d * static_cast<float>(both & 15), -(dmin * static_cast<float>(both >> 4))};
}

void gather_packed(const PackedMatrix& matrix, int64_t row, float* out) {
  const auto tile = static_cast<size_t>(row / kTileRows);
  const int lane = static_cast<int>(row % kTileRows);
  const std::byte* planes = matrix.planes + tile * matrix.plane_bytes;
  if (is_float(matrix.kind)) {
    const auto type = static_cast<DType>(matrix.kind);  // both begin f32, f16, bf16
    for (int64_t k = 0; k < matrix.cols; ++k) out[k] = load_element(type, planes, k * kTileRows + lane);
    return;
  }
  const std::byte* scales = matrix.scales + tile * matrix.scale_bytes;
  StepScale step;
  for (int64_t k = 0; k < matrix.cols; ++k) {
    if (k % matrix.step == 0) step = packed_scale(matrix, scales, k, lane);
    const std::byte* group = planes + k / kGroup * 64 * matrix.bits;
    const int j = static_cast<int>(k % kGroup / 4);
    const auto integer =
        static_cast<float>(packed_integer(group, matrix.bits, j, 4 * lane + static_cast<int>(k % 4)) - matrix.zero);
    out[k] = matrix.has_offset ? std::fma(step.scale, integer, step.offset) : step.scale * integer;
  }
}

}  // namespace

size_t prepared_row_bytes(Compute compute, int64_t cols) {
  if (compute == Compute::kF32) return 0;
  const size_t bytes = prepared_groups(cols) * (compute == Compute::kI8 ? kRecord8 : kRecord16);
  // An odd number of cache lines, so that the same group of neighbouring rows lies in different sets of the caches.
  constexpr size_t kLine = 64;
  return ((bytes + kLine - 1) / kLine | 1) * kLine;
}

void prepare_row(Isa isa, Compute compute, const float* values, int64_t cols, std::byte* prepared) {
  kernels_of(variant_of(isa)).prepare(compute, values, cols, prepared);
}

void round_row(Isa isa, const float* values, int64_t cols, float* rounded) {
  kernels_of(variant_of(isa)).round(values, cols, rounded);
}

void matmul_with(const MatmulKernels& kernels, Compute compute, const PackedMatrix& matrix, const MatmulInput& input,
                 int64_t tile_begin, int64_t tile_end, const float* bias, const MatmulOutput& out, std::byte* scratch) {
  const Compute column = is_float(matrix.kind) ? Compute::kF32 : compute;
  const Product product = {kernels.set[static_cast<size_t>(matrix.kind)][static_cast<size_t>(column)],
                           row_source(matrix, compute, input),
                           {bias, out, matrix.rows}};
  if (matrix.in_place)
    run_in_place(product, matrix, input.rows, tile_begin, tile_end, scratch);
  else
    run_packed(product, matrix, input.rows, tile_begin, tile_end, scratch);
}

void matmul(Isa isa, Compute compute, const PackedMatrix& matrix, const MatmulInput& input, int64_t tile_begin,
            int64_t tile_end, const float* bias, const MatmulOutput& out, std::byte* scratch) {
  matmul_with(kernels_of(variant_of(isa)), compute, matrix, input, tile_begin, tile_end, bias, out, scratch);
}

size_t matmul_scratch_bytes(const MatmulKernels& kernels, const PackedMatrix& matrix) {
  const KernelSet* sets = kernels.set[static_cast<size_t>(matrix.kind)];
  size_t bytes = 0;
  for (const Compute compute : {Compute::kI8, Compute::kI16}) {
    const WideKernel& wide = sets[static_cast<size_t>(compute)].wide;
    if (wide.run == nullptr) continue;
    const auto blocks = static_cast<size_t>(rows_of_pass(wide, prepared_row_bytes(compute, matrix.cols)) / kWideBlock);
    const size_t panels = blocks * static_cast<size_t>(matrix.groups) * wide.panel_bytes;
    bytes = std::max(bytes, unpacked_bytes(wide, matrix.groups) + panels);
  }
  return in_place_bytes(matrix) + bytes;
}

size_t matmul_scratch_bytes(Isa isa, const PackedMatrix& matrix) {
  return matmul_scratch_bytes(kernels_of(variant_of(isa)), matrix);
}

void gather_row(const PackedMatrix& matrix, int64_t row, float* out) {
  if (matrix.in_place)
    dequantize_row(matrix.stored, row, {out, static_cast<size_t>(matrix.cols)});
  else
    gather_packed(matrix, row, out);
}

}  // namespace vedette::ops::cpu
