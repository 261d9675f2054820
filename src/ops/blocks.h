// The stored layouts of quantized rows: where the integers, scales and offsets of a group lie.
//
// Every integer scheme is: weight = scale * (integer - zero) + offset, with unsigned integers of 2..8 bits, a constant
// `zero`, and scales and offsets per run of `step` columns. GGUF layouts are those of ggml's block structures; MLX
// rows are one little-endian stream of bits, with scales and biases in arrays of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/types.h"

namespace vedette::ops {

inline constexpr int kGroup = 32;        // columns that are unpacked together
inline constexpr int kSuperBlock = 256;  // columns of a K-quant block

// How scales are stored. kPlain: one number per run. The others: a float16 d (and dmin) per super-block, times small
// integers per run.
enum class ScaleForm : uint8_t { kPlain, kSuperUnsigned, kSuperSigned, kSuperNibbles };

struct SchemeLayout {
  int block = 1;        // columns of a block
  int block_bytes = 0;  // bytes of a block
  int bits = 0;         // of the unsigned integers; 0: a float scheme, or given by the matrix (MLX)
  int zero = 0;         // subtracted from the integers
  int step = kGroup;    // columns under one scale (MLX: given by the matrix)
  bool has_offset = false;
  ScaleForm form = ScaleForm::kPlain;
};
const SchemeLayout& layout_of(Scheme scheme);

// Bytes of one stored row, MLX included; 0 if the columns do not fit the scheme.
int64_t stored_row_bytes(const HostMatrix& matrix);

// The unsigned integers of columns [32 * group, 32 * group + 32) of the stored row that starts at `row`.
void unpack_group(const HostMatrix& matrix, const std::byte* row, int64_t group, uint8_t* out);
// The same for `count` groups in a row.
void unpack_groups(const HostMatrix& matrix, const std::byte* row, int64_t group, int64_t count, uint8_t* out);

// A K-quant block's scales: weight = d * scale * (q - zero) - dmin * offset.
struct SuperScales {
  uint16_t d = 0;                  // float16
  uint16_t dmin = 0;               // float16; 0 for schemes without offsets
  std::array<int8_t, 16> scale{};  // one per step
  std::array<uint8_t, 16> offset{};
};
SuperScales super_scales(Scheme scheme, const std::byte* block);

// Whether every d and dmin of a stored row of a GGUF scheme is a finite number.
bool scales_finite(Scheme scheme, const std::byte* row, int64_t cols);

// Scale and offset of the run of columns with index `index` (column / step), as float32.
struct StepScale {
  float scale = 0;
  float offset = 0;
};
StepScale step_scale(const HostMatrix& matrix, int64_t stored_row, int64_t index);

float load_element(DType type, const std::byte* data, int64_t index);

}  // namespace vedette::ops
