// Sixteen float lanes in four NEON registers; see lanes_portable.h for what each name means.
#pragma once

#include <arm_neon.h>

#include <cmath>
#include <cstdint>

namespace vedette::ops::cpu::neon {

struct Lanes {
  float32x4_t a, b, c, d;  // lanes 0-3, 4-7, 8-11, 12-15
};

// 32 registers: six chains of four leave room for the four of a key, or of a value, and one of a query or weight.
inline constexpr int kTilePairs = 6;
inline constexpr int kScoreVectors = 1;
inline constexpr int kValueVectors = 1;
inline constexpr int kFewPairs = 2;
inline constexpr int kFewPairsValueVectors = 2;

template <typename Function>
inline Lanes each(Function function, Lanes x) {
  return {function(x.a), function(x.b), function(x.c), function(x.d)};
}
template <typename Function>
inline Lanes each(Function function, Lanes x, Lanes y) {
  return {function(x.a, y.a), function(x.b, y.b), function(x.c, y.c), function(x.d, y.d)};
}

// All ones in the lanes below n, of the four lanes that start at `first`.
inline uint32x4_t lanes_below(int n, int first) {
  constexpr int32_t kIndex[4] = {0, 1, 2, 3};
  return vcltq_s32(vaddq_s32(vld1q_s32(kIndex), vdupq_n_s32(first)), vdupq_n_s32(n));
}

inline Lanes broadcast(float x) {
  const float32x4_t v = vdupq_n_f32(x);
  return {v, v, v, v};
}
inline Lanes load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
inline Lanes load_first(const float* p, int n) {
  float padded[16] = {};
  for (int i = 0; i < n; ++i) padded[i] = p[i];
  return load(padded);
}
inline void store(float* p, Lanes x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
  vst1q_f32(p + 8, x.c);
  vst1q_f32(p + 12, x.d);
}
inline void store_first(float* p, Lanes x, int n) {
  float all[16];
  store(all, x);
  for (int i = 0; i < n; ++i) p[i] = all[i];
}
inline float32x4_t widen_f16(uint16x4_t half) {
  return vcvt_f32_f16(vreinterpret_f16_u16(half));
}
inline Lanes load_f16(const uint16_t* p) {
  return {widen_f16(vld1_u16(p)), widen_f16(vld1_u16(p + 4)), widen_f16(vld1_u16(p + 8)), widen_f16(vld1_u16(p + 12))};
}
inline float32x4_t widen_bf16(uint16x4_t half) {
  return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}
inline Lanes load_bf16(const uint16_t* p) {
  return {widen_bf16(vld1_u16(p)), widen_bf16(vld1_u16(p + 4)), widen_bf16(vld1_u16(p + 8)),
          widen_bf16(vld1_u16(p + 12))};
}
template <typename Narrow>
inline void store_halves(uint16_t* p, Lanes x, Narrow narrow) {
  vst1_u16(p, narrow(x.a));
  vst1_u16(p + 4, narrow(x.b));
  vst1_u16(p + 8, narrow(x.c));
  vst1_u16(p + 12, narrow(x.d));
}
inline void store_f16(uint16_t* p, Lanes x) {
  store_halves(p, x, [](float32x4_t v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); });
}
// To nearest even, as 32 bits whose upper half is the result; not-a-number stays so, quiet.
inline uint32x4_t round_bf16(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(vdupq_n_u32(0x7fff), odd));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vbslq_u32(vceqq_f32(x, x), rounded, quiet);
}
inline void store_bf16(uint16_t* p, Lanes x) {
  store_halves(p, x, [](float32x4_t v) { return vshrn_n_u32(round_bf16(v), 16); });
}

inline Lanes operator+(Lanes x, Lanes y) {
  return each([](float32x4_t u, float32x4_t v) { return vaddq_f32(u, v); }, x, y);
}
inline Lanes operator-(Lanes x, Lanes y) {
  return each([](float32x4_t u, float32x4_t v) { return vsubq_f32(u, v); }, x, y);
}
inline Lanes operator*(Lanes x, Lanes y) {
  return each([](float32x4_t u, float32x4_t v) { return vmulq_f32(u, v); }, x, y);
}
inline Lanes operator/(Lanes x, Lanes y) {
  return each([](float32x4_t u, float32x4_t v) { return vdivq_f32(u, v); }, x, y);
}
inline Lanes operator-(Lanes x) {
  return each([](float32x4_t v) { return vnegq_f32(v); }, x);
}
inline Lanes fma(Lanes x, Lanes y, Lanes z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d)};
}
// NEON's own maximum and minimum give not-a-number where either side is one.
inline float32x4_t larger(float32x4_t u, float32x4_t v) {
  return vbslq_f32(vcgtq_f32(u, v), u, v);
}
inline Lanes max(Lanes x, Lanes y) {
  return each(larger, x, y);
}
inline Lanes min(Lanes x, Lanes y) {
  return each([](float32x4_t u, float32x4_t v) { return vbslq_f32(vcltq_f32(u, v), u, v); }, x, y);
}
inline Lanes abs(Lanes x) {
  return each([](float32x4_t v) { return vabsq_f32(v); }, x);
}
inline Lanes copysign(Lanes magnitude, Lanes sign) {
  return each([](float32x4_t m, float32x4_t s) { return vbslq_f32(vdupq_n_u32(0x80000000u), s, m); }, magnitude, sign);
}
inline Lanes select_less(Lanes u, Lanes v, Lanes x, Lanes y) {
  return {vbslq_f32(vcltq_f32(u.a, v.a), x.a, y.a), vbslq_f32(vcltq_f32(u.b, v.b), x.b, y.b),
          vbslq_f32(vcltq_f32(u.c, v.c), x.c, y.c), vbslq_f32(vcltq_f32(u.d, v.d), x.d, y.d)};
}
inline float32x4_t keep_four(float32x4_t x, int begin, int end, int first, float32x4_t other) {
  return vbslq_f32(vbicq_u32(lanes_below(end, first), lanes_below(begin, first)), x, other);
}
inline Lanes keep_range(Lanes x, int begin, int end, float other) {
  const float32x4_t fill = vdupq_n_f32(other);
  return {keep_four(x.a, begin, end, 0, fill), keep_four(x.b, begin, end, 4, fill), keep_four(x.c, begin, end, 8, fill),
          keep_four(x.d, begin, end, 12, fill)};
}
inline float32x4_t pow2_four(float32x4_t t) {
  return vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(t), 23), vdupq_n_u32(0x3f800000u)));
}
inline Lanes pow2(Lanes t) {
  return each(pow2_four, t);
}

inline float sum(Lanes x) {
  const float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float largest(Lanes x) {
  const float32x4_t four = larger(larger(x.a, x.c), larger(x.b, x.d));
  const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
  const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
  const float first = vget_lane_f32(two, 0), second = vget_lane_f32(two, 1);
  return first > second ? first : second;
}

inline float fma(float a, float b, float c) {
  return std::fma(a, b, c);
}

}  // namespace vedette::ops::cpu::neon
