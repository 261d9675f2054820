// RMS and layer norms of one row. Included once per instruction set (VEDETTE_ISA).
//   RMS:    y = (x * (1 / sqrt(mean(x^2) + eps))) * weight + bias
//   layer:  y = ((x - mean) * (1 / sqrt(mean((x - mean)^2) + eps))) * weight + bias
#pragma once

#include "ops/cpu/kernels.h"
#include "ops/cpu/math-inl.h"

namespace vedette::ops::cpu::VEDETTE_ISA {

inline float inverse_root(float x) {
  return 1.0f / __builtin_sqrtf(x);
}

inline void norm_group(const NormArguments& a, const float* weight, const float* bias, const float* in, float* out) {
  const int64_t n = a.group;
  const float count = static_cast<float>(n);
  float mean = 0;
  if (a.kind == NormKind::kLayer) {
    Lanes total = broadcast(0);
    for_lanes(n, [&](int64_t i, int lanes) { total = total + load_lanes(in + i, lanes); });
    mean = sum(total) / count;
  }
  const Lanes center = broadcast(mean);
  Lanes squares = broadcast(0);
  for_lanes(n, [&](int64_t i, int lanes) {
    // Lanes beyond the row must add nothing, so they are cleared after the mean is taken off.
    const Lanes x = keep_range(load_lanes(in + i, lanes) - center, 0, lanes, 0.0f);
    squares = fma(x, x, squares);
  });
  const Lanes factor = broadcast(inverse_root(sum(squares) / count + a.eps));
  for_lanes(n, [&](int64_t i, int lanes) {
    Lanes y = (load_lanes(in + i, lanes) - center) * factor;
    if (weight != nullptr) y = y * load_lanes(weight + i, lanes);
    if (bias != nullptr) y = y + load_lanes(bias + i, lanes);
    store_lanes(out + i, y, lanes);
  });
}

inline void norm(const NormArguments& a, const float* in, float* out) {
  for (int64_t begin = 0; begin < a.cols; begin += a.group) {
    const int64_t offset = a.weight_per_column ? begin : 0;
    norm_group(a, a.weight != nullptr ? a.weight + offset : nullptr, a.bias != nullptr ? a.bias + offset : nullptr,
               in + begin, out + begin);
  }
}

}  // namespace vedette::ops::cpu::VEDETTE_ISA
