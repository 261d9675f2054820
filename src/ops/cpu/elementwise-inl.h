// Element by element: activations, sums, scales. Included once per instruction set (VEDETTE_ISA).
#pragma once

#include "ops/cpu/kernels.h"
#include "ops/cpu/math-inl.h"

namespace vedette::ops::cpu::VEDETTE_ISA {

// x / (1 + e^-x); below -88 as at -88, -5e-37.
inline Lanes silu(Lanes x) {
  x = max(broadcast(-88.0f), x);
  return x / (broadcast(1.0f) + exp_bounded(-x));
}

inline Lanes gelu_tanh(Lanes x) {
  const Lanes cubic = fma((x * x) * x, broadcast(0.044715f), x);
  return (broadcast(0.5f) * x) * (broadcast(1.0f) + tanh(broadcast(0.7978845608f) * cubic));
}

inline Lanes gelu_erf(Lanes x) {
  return (broadcast(0.5f) * x) * (broadcast(1.0f) + erf(x * broadcast(0.70710678118f)));
}

// max(x, 0), a NaN kept.
inline Lanes relu(Lanes x) {
  return max(broadcast(0.0f), x);
}

inline Lanes xielu(Lanes x, const ActivationParams& p) {
  const Lanes linear = broadcast(p.beta) * x;
  const Lanes positive = fma(broadcast(p.alpha_p) * x, x, linear);
  const Lanes negative = fma(expm1(min(broadcast(p.eps), x)) - x, broadcast(p.alpha_n), linear);
  return select_less(broadcast(0.0f), x, positive, negative);
}

template <typename Function>
inline void map(const float* in, float* out, int64_t n, Function function) {
  for_lanes(n, [&](int64_t i, int lanes) { store_lanes(out + i, function(load_lanes(in + i, lanes)), lanes); });
}

// Calls visit with the function of an activation, so that the choice is made outside the loop.
template <typename Visit>
inline void with_activation(Activation kind, const ActivationParams& params, Visit visit) {
  switch (kind) {
    case Activation::kSilu:
      return visit([](Lanes x) { return silu(x); });
    case Activation::kGeluTanh:
      return visit([](Lanes x) { return gelu_tanh(x); });
    case Activation::kGeluErf:
      return visit([](Lanes x) { return gelu_erf(x); });
    case Activation::kRelu:
      return visit([](Lanes x) { return relu(x); });
    case Activation::kRelu2:
      return visit([](Lanes x) { return relu(x) * relu(x); });
    case Activation::kXielu:
      return visit([&](Lanes x) { return xielu(x, params); });
  }
}

inline void activate(Activation kind, const ActivationParams& params, const float* in, float* out, int64_t n) {
  with_activation(kind, params, [&](auto function) { map(in, out, n, function); });
}

inline void gated_activation(Activation kind, const float* gate, const float* up, float* out, int64_t n) {
  with_activation(kind, ActivationParams{}, [&](auto function) {
    for_lanes(n, [&](int64_t i, int lanes) {
      store_lanes(out + i, function(load_lanes(gate + i, lanes)) * load_lanes(up + i, lanes), lanes);
    });
  });
}

inline void add_scaled(float* inout, float scale, const float* addend, int64_t n) {
  const Lanes factor = broadcast(scale);
  for_lanes(n, [&](int64_t i, int lanes) {
    store_lanes(inout + i, fma(factor, load_lanes(addend + i, lanes), load_lanes(inout + i, lanes)), lanes);
  });
}

inline void scale(float* inout, float factor, int64_t n) {
  map(inout, inout, n, [&](Lanes x) { return x * broadcast(factor); });
}

inline void clip(float* inout, float limit, int64_t n) {
  map(inout, inout, n, [&](Lanes x) { return min(broadcast(limit), max(broadcast(-limit), x)); });
}

inline Lanes soft_cap(Lanes x, float cap) {
  return broadcast(cap) * tanh(x / broadcast(cap));
}

inline void finish_logits(float* inout, float factor, float softcap, int64_t n) {
  map(inout, inout, n, [&](Lanes x) {
    x = x * broadcast(factor);
    return softcap > 0 ? soft_cap(x, softcap) : x;
  });
}

}  // namespace vedette::ops::cpu::VEDETTE_ISA
