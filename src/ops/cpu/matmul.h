// Matrix products on the CPU: packed weights, prepared activations, one canonical sum.
//
// Layout: outputs lie across vector lanes. A matrix is cut into tiles of 16 outputs; inside a tile the integers of
// 4 consecutive k of each of the 16 outputs stand together (64 bytes as 8-bit), so every output has exactly one
// accumulator and the float order is the group order on every instruction set.
//
// The canonical sum of one output, groups of 32 k in order (steps of 16 where a scheme has sub-scales of 16):
//   acc = fma(s_w * s_a, float(S), acc)        S = sum of integer products, exact in int32
//   acc = fma(m_w * s_a, float(A), acc)        only for schemes with stored offsets; A = sum of the activations
// Constant offsets (Q4_0's -8, Q5_0's -16, Q6_K's -32, ...) go into S as integers. Float matrices and Compute::kF32:
//   acc = fma(w[k], a[k], acc)                 k in order
// The bias is added last. No function here looks at the number of rows to decide an order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/types.h"

namespace vedette::ops::cpu {

inline constexpr int kTileRows = 16;         // outputs per tile
inline constexpr int kWideBlock = 16;        // rows that the kernels for many rows take at a time
inline constexpr int kActivationGroup = 32;  // activations per scale, for every scheme

// Weights ready for the kernels. Immutable after pack(); any thread may read.
struct PackedMatrix;
struct PackedMatrixDeleter {
  void operator()(PackedMatrix* matrix) const;
};
using PackedMatrixPtr = std::unique_ptr<PackedMatrix, PackedMatrixDeleter>;

// What packing may use; the bytes it makes are the same with and without.
class Pool;
class WeightMemory;
struct PackResources {
  Pool* pool = nullptr;            // null: the calling thread packs
  WeightMemory* memory = nullptr;  // must outlive the matrix; null: the matrix has memory of its own
};

// Re-packs (repack) or wraps in place (!repack: the same results from the stored layout, slower; row-mapped and
// transposed matrices are always re-packed). Errors: kCorruptFile (a size that contradicts the shape, NaN or infinite
// scales), kUnsupported (bits or group out of range, cols that do not fit the scheme's blocks), each naming the tensor.
// Stored pages of a mapped file are released once they are re-packed.
Result<PackedMatrixPtr> pack_matrix(const HostMatrix& matrix, bool repack, const PackResources& resources = {});

int64_t packed_rows(const PackedMatrix& matrix);
int64_t packed_cols(const PackedMatrix& matrix);
int64_t packed_tiles(const PackedMatrix& matrix);  // ceil(rows / kTileRows)
bool packed_is_float(const PackedMatrix& matrix);
int64_t packed_owned_bytes(const PackedMatrix& matrix);
int64_t packed_mapped_bytes(const PackedMatrix& matrix);

// Prepared activations: what products read of a row besides its float32 values. One opaque blob per row, 64-byte
// aligned, bytes a multiple of 64:
//   kI8: per group of 32 int8 values in +-127, float scale, negated sums of the halves and the whole
//   kI16: the same with int16 values in +-32639; kF32: nothing
// scale = max|x| / 127 (or / 32639); value = round-to-even(x * (1 / scale)); a group whose scale would be below the
// smallest normal float32 (all zeros, above all) has scale 0.
// Non-finite inputs give a non-finite scale and so non-finite outputs of that row only.
size_t prepared_row_bytes(Compute compute, int64_t cols);
void prepare_row(Isa isa, Compute compute, const float* values, int64_t cols, std::byte* prepared);
// What float matrices read at kI8: the row rounded to bfloat16, kept as float32.
void round_row(Isa isa, const float* values, int64_t cols, float* rounded);

struct MatmulInput {
  const float* values = nullptr;        // [rows, value_stride]
  int64_t value_stride = 0;             // in floats
  const std::byte* prepared = nullptr;  // [rows, prepared_row_bytes]: for integer schemes
  const float* rounded = nullptr;       // [rows, value_stride]: for float schemes at kI8
  int64_t rows = 0;
};

// Where results go: output n of row r to data[r * stride + n - first]. In floats.
struct MatmulOutput {
  float* data = nullptr;
  int64_t stride = 0;
  int64_t first = 0;
};

// Rows 0..input.rows and outputs of tiles [tile_begin, tile_end). bias may be null.
// scratch: at least matmul_scratch_bytes(), one per thread.
void matmul(Isa isa, Compute compute, const PackedMatrix& matrix, const MatmulInput& input, int64_t tile_begin,
            int64_t tile_end, const float* bias, const MatmulOutput& out, std::byte* scratch);
size_t matmul_scratch_bytes(Isa isa, const PackedMatrix& matrix);

// Row `row` of the matrix as float32 (embedding look-up); equals dequantize_row of the stored row, in every mode.
void gather_row(const PackedMatrix& matrix, int64_t row, float* out);

}  // namespace vedette::ops::cpu
