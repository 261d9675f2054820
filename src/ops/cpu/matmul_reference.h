// The slow, obvious definition of a matrix product, for tests: integers and scales straight from the descriptions of
// the formats, activations rounded as the header says, one canonical sum per output. Shares no code with the kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/types.h"

namespace vedette::ops::reference {

// One weight: scale * integer + offset. The scale is that of the run of columns which `step` says.
struct Weight {
  float scale = 0;
  int integer = 0;
  float offset = 0;
};

// Columns under one scale: 16 or 32 (MLX groups of 64 and 128 count as runs of 32).
int step_of(const HostMatrix& matrix);
bool has_offsets(Scheme scheme);
// One logical row of an integer scheme, or its float values.
std::vector<Weight> weights_of_row(const HostMatrix& matrix, int64_t row);
std::vector<float> floats_of_row(const HostMatrix& matrix, int64_t row);

// out[rows, matrix.rows] of values[rows, matrix.cols].
std::vector<float> product(const HostMatrix& matrix, Compute compute, const std::vector<float>& values, int64_t rows,
                           const float* bias);

// A random matrix: every stored bit pattern except that scales are finite (about `scale`).
// extreme: the integers and sub-scales are at their limits.
struct StoredMatrix {
  std::vector<std::byte> data, scales, biases;
  HostMatrix view;
};
struct MatrixKind {
  Scheme scheme = Scheme::kF32;
  int bits = 0, group = 0;
  DType side = DType::kBF16;
};
std::vector<MatrixKind> all_kinds();
std::string name_of(const MatrixKind& kind);
StoredMatrix random_matrix(const MatrixKind& kind, int64_t rows, int64_t cols, uint32_t seed, bool extreme = false);

}  // namespace vedette::ops::reference
