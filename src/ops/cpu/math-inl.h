// exp, expm1, tanh, erf on sixteen lanes; float32, a few units in the last place, the same bits on every
// instruction set. Included once per instruction set with VEDETTE_ISA naming its namespace.
//
// exp: x = n ln 2 + r, |r| <= ln 2 / 2, e^r - 1 = r + r^2 q(r) with q a Chebyshev fit (error 1.4e-9).

#pragma once

#include <cstdint>

namespace vedette::ops::cpu::VEDETTE_ISA {

// Calls function(column, lanes) for each vector of n columns; the last may have fewer than 16 lanes.
template <typename Function>
inline void for_lanes(int64_t n, Function function) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) function(i, 16);
  if (i < n) function(i, static_cast<int>(n - i));
}

inline Lanes load_lanes(const float* p, int lanes) {
  return lanes == 16 ? load(p) : load_first(p, lanes);
}
inline void store_lanes(float* p, Lanes x, int lanes) {
  if (lanes == 16) {
    store(p, x);
  } else {
    store_first(p, x, lanes);
  }
}

struct ExpParts {
  Lanes n;        // integer as a float
  Lanes expm1_r;  // e^r - 1
};

// 1.5 * 2^23: adding it rounds to the nearest integer and leaves the integer in the low bits.
inline constexpr float kRoundMagic = 12582912.0f;

inline ExpParts split_exp(Lanes x) {
  const Lanes magic = broadcast(kRoundMagic);
  const Lanes n = fma(x, broadcast(0x1.715476p+0f), magic) - magic;
  // ln 2 in two parts; the product n * 0x1.62e4p-1 is exact for |n| < 2^9.
  const Lanes r = fma(n, broadcast(-0x1.7f7d1cp-20f), fma(n, broadcast(-0x1.62e4p-1f), x));
  Lanes q = broadcast(0x1.a1256cp-13f);
  q = fma(q, r, broadcast(0x1.6d43bp-10f));
  q = fma(q, r, broadcast(0x1.1110ep-7f));
  q = fma(q, r, broadcast(0x1.5554e8p-5f));
  q = fma(q, r, broadcast(0x1.555556p-3f));
  q = fma(q, r, broadcast(0.5f));
  return {n, fma(q, r * r, r)};
}

// Underflows to 0 through denormals, overflows to infinity, keeps NaN.
inline Lanes exp(Lanes x) {
  x = min(broadcast(89.0f), max(broadcast(-105.0f), x));
  const ExpParts parts = split_exp(x);
  // 2^n in two factors, because n runs beyond the exponents of one float.
  const Lanes magic = broadcast(kRoundMagic);
  const Lanes half = fma(parts.n, broadcast(0.5f), magic);
  const Lanes rest = (parts.n - (half - magic)) + magic;
  return ((broadcast(1.0f) + parts.expm1_r) * pow2(half)) * pow2(rest);
}

// For x <= 88, without the care for denormals: below -87 as at -87, 1.6e-38. Keeps NaN.
inline Lanes exp_bounded(Lanes x) {
  const ExpParts parts = split_exp(max(broadcast(-87.0f), x));
  return (broadcast(1.0f) + parts.expm1_r) * pow2(parts.n + broadcast(kRoundMagic));
}

inline constexpr float kLog2E = 0x1.715476p+0f;

// 2^x for x <= 127; below -125 as at -125, 2.4e-38. Keeps NaN. x = n + r, 2^r = 1 + r q(r) with q fitted
// (error 2e-9).
inline Lanes exp2_bounded(Lanes x) {
  x = max(broadcast(-125.0f), x);
  const Lanes shifted = x + broadcast(kRoundMagic);
  const Lanes r = x - (shifted - broadcast(kRoundMagic));
  Lanes q = broadcast(0x1.41fbbcp-13f);
  q = fma(q, r, broadcast(0x1.5f3e54p-10f));
  q = fma(q, r, broadcast(0x1.3b2d4cp-7f));
  q = fma(q, r, broadcast(0x1.c6aee8p-5f));
  q = fma(q, r, broadcast(0x1.ebfbdcp-3f));
  q = fma(q, r, broadcast(0x1.62e430p-1f));
  return fma(q, r, broadcast(1.0f)) * pow2(shifted);
}

// For x <= 88; more is taken as 88.
inline Lanes expm1(Lanes x) {
  x = min(broadcast(88.0f), max(broadcast(-30.0f), x));
  const ExpParts parts = split_exp(x);
  const Lanes power = pow2(parts.n + broadcast(kRoundMagic));
  return fma(power, parts.expm1_r, power - broadcast(1.0f));
}

// tanh |x| = e / (e + 2) with e = e^(2|x|) - 1.
inline Lanes tanh(Lanes x) {
  const Lanes magnitude = min(broadcast(10.0f), abs(x));
  const Lanes e = expm1(magnitude + magnitude);
  return copysign(e / (e + broadcast(2.0f)), x);
}

// |x| < 1: x P(x^2); else 1 - e^(-Q(|x|)), Q fitted to -log erfc on [1, 4] (error 1.7e-8).
inline Lanes erf(Lanes x) {
  const Lanes a = min(broadcast(4.0f), abs(x));
  const Lanes u = a * a;
  Lanes p = broadcast(0x1.4a569p-14f);
  p = fma(p, u, broadcast(-0x1.a45088p-11f));
  p = fma(p, u, broadcast(0x1.541270p-8f));
  p = fma(p, u, broadcast(-0x1.b7fabap-6f));
  p = fma(p, u, broadcast(0x1.ce2d1p-4f));
  p = fma(p, u, broadcast(-0x1.81273ep-2f));
  p = fma(p, u, broadcast(0x1.20dd74p+0f));
  Lanes q = broadcast(-0x1.b7783p-20f);
  q = fma(q, a, broadcast(0x1.825ce4p-15f));
  q = fma(q, a, broadcast(-0x1.38e5e6p-11f));
  q = fma(q, a, broadcast(0x1.37ecc6p-8f));
  q = fma(q, a, broadcast(-0x1.b0e246p-6f));
  q = fma(q, a, broadcast(0x1.c2e356p-4f));
  q = fma(q, a, broadcast(0x1.437eb4p-1f));
  q = fma(q, a, broadcast(0x1.2156fap+0f));
  q = fma(q, a, broadcast(-0x1.4fb068p-12f));
  const Lanes outer = broadcast(1.0f) - exp_bounded(-q);
  return copysign(select_less(a, broadcast(1.0f), a * p, outer), x);
}

}  // namespace vedette::ops::cpu::VEDETTE_ISA
