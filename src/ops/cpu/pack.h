// The packed layout of a matrix: what pack_matrix writes and the kernels read.
//
// Outputs are cut into tiles of 16. For integer schemes a tile holds, per group of 32 columns, the unsigned integers
// as bit planes of 64-byte lines, and apart from them the scales:
//
//   step j (0..7) = columns 4j .. 4j+3 of the group; byte 4 * output + i of a line belongs to column 4j + i
//   4-bit plane: line i = step 2i in the low nibbles, step 2i+1 in the high ones        (4 lines)
//   2-bit plane: line i = steps 4i .. 4i+3 in bits 0-1, 2-3, 4-5, 6-7                   (2 lines)
//   1-bit plane: one line, step j in bit j
//   8 bits: a line per step; 3 = 2 + 1, 5 = 4 + 1, 6 = 4 + 2: the lower bits' plane comes first
//
//   plain scales: per weight group, 16 scales then (with offsets) 16 offsets, in the stored type
//   K-quants: per super-block, 16 d, (with offsets) 16 dmin, both float16; then per step of 32 or 16 columns 16 bytes
//   of scales and 16 of offsets (Q2_K: one byte of both, the offset in the high nibble)
//
// Float schemes: [cols][16 outputs] in the stored type. Outputs beyond the last row are zeros with zero scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ops/blocks.h"
#include "ops/cpu/matmul.h"
#include "ops/types.h"

namespace vedette::ops::cpu {

// What a kernel must know of a scheme. Q4_1 and Q5_1 are plain scales of float16, as MLX's may be.
enum class KernelKind : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ5_0,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kPlain2,
  kPlain3,
  kPlain4,
  kPlain5,
  kPlain6,
  kPlain8,
};
inline constexpr size_t kKernelKinds = static_cast<size_t>(KernelKind::kPlain8) + 1;
constexpr bool is_float(KernelKind kind) {
  return kind <= KernelKind::kBF16;
}

struct FreeDeleter {
  void operator()(std::byte* data) const { std::free(data); }
};

struct PackedMatrix {
  std::string name;
  KernelKind kind = KernelKind::kF32;
  int64_t rows = 0, cols = 0, tiles = 0;
  int64_t groups = 0;  // of 32 columns; integer schemes
  int bits = 0, zero = 0, step = 0;
  bool has_offset = false;
  ScaleForm form = ScaleForm::kPlain;
  DType side = DType::kF16;                 // of plain scales
  int group_shift = 0;                      // weight group = 32 << group_shift columns; plain scales
  size_t plane_bytes = 0, scale_bytes = 0;  // per tile
  // Repacked: planes of every tile, then scales of every tile; in a WeightMemory, or in memory of their own.
  // In place: the stored matrix.
  std::unique_ptr<std::byte[], FreeDeleter> owned;
  const std::byte* planes = nullptr;
  const std::byte* scales = nullptr;
  bool in_place = false;
  HostMatrix stored;  // in place only
};

// Scale bytes of a run of 256 columns of a K-quant.
constexpr size_t super_scale_bytes(ScaleForm form, bool has_offset, int step) {
  const size_t bytes_per_step = has_offset && form == ScaleForm::kSuperUnsigned ? 32 : 16;
  return (has_offset ? 64 : 32) + bytes_per_step * static_cast<size_t>(kSuperBlock / step);
}

// Writes one tile of `source` (the matrix that `matrix` describes): plane_bytes and scale_bytes. Both zeroed before.
void pack_tile(const PackedMatrix& matrix, const HostMatrix& source, int64_t tile, std::byte* planes,
               std::byte* scales);

}  // namespace vedette::ops::cpu
