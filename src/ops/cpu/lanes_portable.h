// Sixteen float lanes in portable C++: the definition that the other instruction sets reproduce bit for bit.
//
// Every header lanes_*.h offers the same names in a namespace of its own. max(a, b) is a > b ? a : b and
// min(a, b) is a < b ? a : b, so a NaN in the second place is kept and one in the first is dropped.
// fma rounds once. pow2(t) takes t = n + 1.5 * 2^23 and gives 2^n for -126 <= n <= 127.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/float16.h"

namespace vedette::ops::cpu::portable {

struct Lanes {
  float v[16];
};

// Register blocking of the attention kernels: pairs per tile, vectors of 16 keys per score tile, vectors of 16 columns
// per value tile. With few pairs more columns at once read memory in longer runs.
inline constexpr int kTilePairs = 4;
inline constexpr int kScoreVectors = 1;
inline constexpr int kValueVectors = 1;
inline constexpr int kFewPairs = 2;
inline constexpr int kFewPairsValueVectors = 1;

template <typename Function>
inline Lanes each(Function function) {
  Lanes out;
  for (int i = 0; i < 16; ++i) out.v[i] = function(i);
  return out;
}

inline Lanes broadcast(float x) {
  return each([&](int) { return x; });
}
inline Lanes load(const float* p) {
  return each([&](int i) { return p[i]; });
}
// The first n lanes, the others 0.
inline Lanes load_first(const float* p, int n) {
  return each([&](int i) { return i < n ? p[i] : 0.0f; });
}
inline void store(float* p, Lanes a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
inline void store_first(float* p, Lanes a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
inline Lanes load_f16(const uint16_t* p) {
  return each([&](int i) { return f16_to_float(p[i]); });
}
inline Lanes load_bf16(const uint16_t* p) {
  return each([&](int i) { return bf16_to_float(p[i]); });
}
inline void store_f16(uint16_t* p, Lanes a) {
  for (int i = 0; i < 16; ++i) p[i] = float_to_f16(a.v[i]);
}
inline void store_bf16(uint16_t* p, Lanes a) {
  for (int i = 0; i < 16; ++i) p[i] = float_to_bf16(a.v[i]);
}

inline Lanes operator+(Lanes a, Lanes b) {
  return each([&](int i) { return a.v[i] + b.v[i]; });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return each([&](int i) { return a.v[i] - b.v[i]; });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return each([&](int i) { return a.v[i] * b.v[i]; });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return each([&](int i) { return a.v[i] / b.v[i]; });
}
inline Lanes operator-(Lanes a) {
  return each([&](int i) { return -a.v[i]; });
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return each([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}
inline Lanes max(Lanes a, Lanes b) {
  return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes min(Lanes a, Lanes b) {
  return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes abs(Lanes a) {
  return each([&](int i) { return std::fabs(a.v[i]); });
}
inline Lanes copysign(Lanes magnitude, Lanes sign) {
  return each([&](int i) { return std::copysign(magnitude.v[i], sign.v[i]); });
}
// a < b ? x : y (NaN: y).
inline Lanes select_less(Lanes a, Lanes b, Lanes x, Lanes y) {
  return each([&](int i) { return a.v[i] < b.v[i] ? x.v[i] : y.v[i]; });
}
// Lanes begin..end-1 of x, the others `other`.
inline Lanes keep_range(Lanes x, int begin, int end, float other) {
  return each([&](int i) { return i >= begin && i < end ? x.v[i] : other; });
}
inline Lanes pow2(Lanes t) {
  return each([&](int i) { return std::bit_cast<float>((std::bit_cast<uint32_t>(t.v[i]) << 23) + 0x3f800000u); });
}

// The one tree: lane i with i + 8, then + 4, + 2, + 1.
inline float sum(Lanes a) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.v[i] = a.v[i] + a.v[i + width];
  }
  return a.v[0];
}
inline float largest(Lanes a) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.v[i] = a.v[i] > a.v[i + width] ? a.v[i] : a.v[i + width];
  }
  return a.v[0];
}

inline float fma(float a, float b, float c) {
  return std::fma(a, b, c);
}

}  // namespace vedette::ops::cpu::portable
