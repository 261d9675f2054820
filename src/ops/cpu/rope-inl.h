// Rotary positions of one row's heads, in place. Included once per instruction set (VEDETTE_ISA).
//   (a, b) -> (a cos - b sin, b cos + a sin)
#pragma once

#include "ops/cpu/kernels.h"
#include "ops/cpu/math-inl.h"

namespace vedette::ops::cpu::VEDETTE_ISA {

inline void rope_half(const RopeArguments& r, float* head) {
  float* second = head + r.rotary_dim / 2;
  for_lanes(r.rotary_dim / 2, [&](int64_t i, int lanes) {
    const Lanes c = load_lanes(r.cos + i, lanes);
    const Lanes s = load_lanes(r.sin + i, lanes);
    const Lanes a = load_lanes(head + i, lanes);
    const Lanes b = load_lanes(second + i, lanes);
    store_lanes(head + i, fma(-b, s, a * c), lanes);
    store_lanes(second + i, fma(a, s, b * c), lanes);
  });
}

inline void rope_interleaved(const RopeArguments& r, float* head) {
  for (int i = 0; i < r.rotary_dim / 2; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = fma(-b, r.sin[i], a * r.cos[i]);
    head[2 * i + 1] = fma(a, r.sin[i], b * r.cos[i]);
  }
}

inline void rope(const RopeArguments& r, float* heads, int64_t n_heads, int64_t head_dim) {
  for (int64_t h = 0; h < n_heads; ++h) {
    if (r.kind == RopeKind::kHalf) rope_half(r, heads + h * head_dim);
    if (r.kind == RopeKind::kInterleaved) rope_interleaved(r, heads + h * head_dim);
  }
}

}  // namespace vedette::ops::cpu::VEDETTE_ISA
