// The seam between the driver (matmul.cpp) and the kernels of each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/cpu/matmul.h"
#include "ops/cpu/pack.h"

namespace vedette::ops::cpu {

// A prepared row: records of one group each, then (i8 only) the row rounded to bfloat16, as float32. A record is
// 32 values, the scale, the negated sums of either half and of the whole (int32). int16 values stand in the order
// 0 2 1 3 within each 4 columns, which is how the kernels split packed bytes into even and odd 16-bit lanes.
inline constexpr int kRecord8 = 48;
inline constexpr int kRecord16 = 80;
// (always inlined: a copy compiled for one instruction set must not serve the rest of the program)
[[gnu::always_inline]] constexpr size_t prepared_groups(int64_t cols) {
  return static_cast<size_t>((cols + kGroup - 1) / kGroup);
}
// Where the rounded row begins.
[[gnu::always_inline]] constexpr size_t rounded_offset(int64_t cols) {
  return (prepared_groups(cols) * kRecord8 + 63) / 64 * 64;
}

// One tile (and those behind it) as a kernel sees it.
struct TileView {
  const std::byte* planes = nullptr;
  const std::byte* scales = nullptr;
  size_t plane_bytes = 0, scale_bytes = 0;  // from tile to tile
  int64_t groups = 0;                       // integer schemes
  int64_t cols = 0;                         // float schemes
  int group_shift = 0;
  DType side = DType::kF16;
};

inline constexpr int kMaxRowBlock = 8;
inline constexpr int kTileRun = 4;  // tiles of a single-row run
// result[tile][row][output] = canonical sums. rows: prepared rows (i8, i16) or float32 values.
using Kernel = void (*)(const TileView& view, const std::byte* const* rows, float* result);

// A kernel for exactly `rows` rows of one tile.
struct RowKernel {
  Kernel kernel = nullptr;
  int rows = 0;
};

struct KernelSet {
  // For n rows: block[n - 1], which may run more rows: one is repeated and its result dropped.
  RowKernel block[kMaxRowBlock] = {};
  Kernel run = nullptr;  // kTileRun tiles, one row; null where single tiles do as well
};

struct Kernels {
  KernelSet set[kKernelKinds][3];  // [kind][compute]; float kinds use the f32 column alone
  void (*prepare)(Compute compute, const float* values, int64_t cols, std::byte* prepared);
};

enum class KernelVariant : uint8_t { kPortable, kAvx2, kAvx512, kAvx512Vnni };
const char* to_string(KernelVariant variant);
// Every variant this machine can run: the instruction sets, and AVX-512 with and without VNNI.
std::span<const KernelVariant> available_variants();
const Kernels& kernels_of(KernelVariant variant);
KernelVariant variant_of(Isa isa);

void matmul_with(const Kernels& kernels, Compute compute, const PackedMatrix& matrix, const MatmulInput& input,
                 int64_t tile_begin, int64_t tile_end, const float* bias, float* out, int64_t out_stride,
                 std::byte* scratch);

// Defined by the file of each instruction set.
extern const Kernels kPortableKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;
void prepare_row_portable(Compute compute, const float* values, int64_t cols, std::byte* prepared);
void prepare_row_avx2(Compute compute, const float* values, int64_t cols, std::byte* prepared);

}  // namespace vedette::ops::cpu
