#include "ops/types.h"

#include <cmath>

#include "ops/blocks.h"

namespace vedette::ops {

const char* to_string(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
  }
  return "?";
}

const char* to_string(Compute compute) {
  switch (compute) {
    case Compute::kI8:
      return "i8";
    case Compute::kI16:
      return "i16";
    case Compute::kF32:
      return "f32";
  }
  return "?";
}

const char* to_string(Scheme scheme) {
  switch (scheme) {
    case Scheme::kF32:
      return "F32";
    case Scheme::kF16:
      return "F16";
    case Scheme::kBF16:
      return "BF16";
    case Scheme::kQ4_0:
      return "Q4_0";
    case Scheme::kQ4_1:
      return "Q4_1";
    case Scheme::kQ5_0:
      return "Q5_0";
    case Scheme::kQ5_1:
      return "Q5_1";
    case Scheme::kQ8_0:
      return "Q8_0";
    case Scheme::kQ2_K:
      return "Q2_K";
    case Scheme::kQ3_K:
      return "Q3_K";
    case Scheme::kQ4_K:
      return "Q4_K";
    case Scheme::kQ5_K:
      return "Q5_K";
    case Scheme::kQ6_K:
      return "Q6_K";
    case Scheme::kMlxAffine:
      return "MLX affine";
  }
  return "?";
}

int64_t row_bytes(Scheme scheme, int64_t cols) {
  const SchemeLayout& layout = layout_of(scheme);
  if (layout.block_bytes == 0 || cols % layout.block != 0) return 0;
  return cols / layout.block * layout.block_bytes;
}

void dequantize_row(const HostMatrix& matrix, int64_t row, std::span<float> out) {
  if (is_float(matrix.scheme)) {
    const auto type = static_cast<DType>(matrix.scheme);  // both enumerations begin f32, f16, bf16
    const int64_t first = matrix.transposed ? row : row * matrix.cols;
    const int64_t stride = matrix.transposed ? matrix.stored_rows : 1;
    for (int64_t k = 0; k < matrix.cols; ++k) out[k] = load_element(type, matrix.data.data(), first + k * stride);
    return;
  }
  const SchemeLayout& layout = layout_of(matrix.scheme);
  const int64_t step = matrix.scheme == Scheme::kMlxAffine ? matrix.group : layout.step;
  const std::byte* data = matrix.data.data() + row * stored_row_bytes(matrix);
  uint8_t integers[kGroup];
  for (int64_t k = 0; k < matrix.cols; ++k) {
    if (k % kGroup == 0) unpack_group(matrix, data, k / kGroup, integers);
    const StepScale step_values = step_scale(matrix, row, k / step);
    const auto integer = static_cast<float>(integers[k % kGroup] - layout.zero);
    // The product is exact but for float32 scales, where the fused form is the definition.
    out[k] = layout.has_offset ? std::fma(step_values.scale, integer, step_values.offset) : step_values.scale * integer;
  }
}

}  // namespace vedette::ops
