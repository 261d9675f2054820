// Rows in MLX's affine layout: quantized from floats, or repacked from GGUF blocks without loss.
#pragma once

#include <cstdint>
#include <span>

#include "ops/types.h"

namespace vedette::weights {

// One row's groups: integers as one stream of bits from the low end, and scale and bias per group as float32.
struct AffineRow {
  std::span<uint8_t> integers;  // cols * bits / 8 bytes
  std::span<float> scales;      // cols / group
  std::span<float> biases;
};

// As mlx.core.quantize does it: the edge of larger magnitude is a multiple of the scale, so it and 0 are kept well.
void quantize_affine(std::span<const float> values, int bits, int group, const AffineRow& out);

// Whether a scheme's blocks are affine groups of 32 with float16 scales.
bool is_repackable(ops::Scheme scheme);
int repacked_bits(ops::Scheme scheme);
// Stored row `row` of a repackable matrix as groups of 32.
void repack_affine(const ops::HostMatrix& matrix, int64_t row, const AffineRow& out);

}  // namespace vedette::weights
