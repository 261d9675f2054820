// The seam between the driver (matmul.cpp) and the kernels of each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/cpu/matmul.h"
#include "ops/cpu/pack.h"

namespace vedette::ops::cpu {

// A prepared row: records of one group each. A record is 32 values, and behind them the scale, the negated sums of
// either half and of the whole as int32 (kMinusCounts), and the same as float32 (kMinusSums; exact). int8 values stand
// in order. int16 values stand as the kernels of the variant read them: as words in the order 0 2 1 3 within each 4
// columns, which is how packed bytes are split into even and odd 16-bit lanes; or as two digits, x = 256 high + low,
// the 32 low bytes (int8) and then the 32 high ones.
inline constexpr int kRecord8 = 64;
inline constexpr int kRecord16 = 96;
inline constexpr int kMinusCounts = 4;
inline constexpr int kMinusSums = 16;
// (always inlined: a copy compiled for one instruction set must not serve the rest of the program)
[[gnu::always_inline]] constexpr size_t prepared_groups(int64_t cols) {
  return static_cast<size_t>((cols + kGroup - 1) / kGroup);
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

// Tiles that the kernels for many rows take at a time: a row's results are written together, and a panel stays in the
// first-level cache meanwhile.
inline constexpr int kWideTiles = 4;
// Many rows: a tile is unpacked once, [groups][tile_bytes]: its integers as bytes, [8 packed steps][64], less their
// zero where the scheme has one and the kernel wants signed bytes, and behind them what else the kernel keeps of a
// group. Rows are taken kWideBlock at a time: as they are prepared, or laid out as a panel once, [groups][panel_bytes].
struct WideKernel {
  int least_rows = kWideBlock;  // from which on it is faster than blocks of rows
  size_t panel_bytes = 0;       // of one group of a panel; 0: rows as they are prepared
  void (*unpack)(const TileView& view, std::byte* bytes) = nullptr;
  // rows: the first of kWideBlock prepared rows, `stride` bytes apart.
  void (*fill_panel)(const std::byte* rows, size_t stride, int64_t groups, std::byte* panel) = nullptr;
  // result[row][tile][output] of n_tiles tiles, which lie unpacked behind each other; a row's results begin
  // result_stride floats behind those of the row before. rows: a panel, or prepared rows `stride` bytes apart.
  void (*run)(const TileView& view, const std::byte* bytes, int n_tiles, const std::byte* rows, size_t stride,
              float* result, int64_t result_stride) = nullptr;
  size_t tile_bytes = size_t{kGroup} * kTileRows;  // of one group of an unpacked tile
};

// A kernel for exactly `rows` rows of one tile.
struct RowKernel {
  Kernel kernel = nullptr;
  int rows = 0;
};

struct KernelSet {
  // For n rows: block[n - 1], which may run more rows: one is repeated and its result dropped.
  RowKernel block[kMaxRowBlock] = {};
  Kernel run = nullptr;  // kTileRun tiles, one row; null where single tiles do as well
  WideKernel wide;       // null where blocks do as well
};

struct MatmulKernels {
  KernelSet set[kKernelKinds][3];  // [kind][compute]; float kinds use the f32 column alone
  void (*prepare)(Compute compute, const float* values, int64_t cols, std::byte* prepared);
  void (*round)(const float* values, int64_t cols, float* rounded);
};

enum class KernelVariant : uint8_t { kPortable, kAvx2, kAvx512, kAvx512Vnni, kAmx, kNeon };
const char* to_string(KernelVariant variant);
// Every variant this machine can run: the instruction sets, and AVX-512 with and without VNNI. AMX has tiles for many
// rows and VNNI for few.
std::span<const KernelVariant> available_variants();
const MatmulKernels& kernels_of(KernelVariant variant);
KernelVariant variant_of(Isa isa);

void matmul_with(const MatmulKernels& kernels, Compute compute, const PackedMatrix& matrix, const MatmulInput& input,
                 int64_t tile_begin, int64_t tile_end, const float* bias, const MatmulOutput& out, std::byte* scratch);

size_t matmul_scratch_bytes(const MatmulKernels& kernels, const PackedMatrix& matrix);

// Defined by the file of each instruction set.
extern const MatmulKernels kPortableKernels;
extern const MatmulKernels kAvx2Kernels;
extern const MatmulKernels kAvx512Kernels;
extern const MatmulKernels kAvx512VnniKernels;
extern const MatmulKernels kNeonKernels;
void prepare_row_portable(Compute compute, const float* values, int64_t cols, std::byte* prepared);
void round_row_portable(const float* values, int64_t cols, float* rounded);
void round_row_avx2(const float* values, int64_t cols, float* rounded);
void prepare_row_avx2(Compute compute, const float* values, int64_t cols, std::byte* prepared);
// The same with int16 values as digits.
void prepare_digits_avx2(Compute compute, const float* values, int64_t cols, std::byte* prepared);
void prepare_digits_neon(Compute compute, const float* values, int64_t cols, std::byte* prepared);
void round_row_neon(const float* values, int64_t cols, float* rounded);

// Wide kernels, null for float kinds and f32.
struct WideTable {
  WideKernel kernels[kKernelKinds][3] = {};
};
extern const WideTable kAmxWideKernels;  // AMX tiles
// A variant's kernels and, for many rows, those of the table.
MatmulKernels with_wide(const MatmulKernels& narrow, const WideTable& wide);

}  // namespace vedette::ops::cpu
