// Sixteen float lanes in one AVX-512 register; see lanes_portable.h for what each name means.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace vedette::ops::cpu::avx512 {

struct Lanes {
  __m512 v;
};

inline constexpr int kTilePairs = 12;
inline constexpr int kScoreVectors = 2;
inline constexpr int kValueVectors = 2;
inline constexpr int kFewPairs = 4;
inline constexpr int kFewPairsValueVectors = 4;

inline __mmask16 first_lanes(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

inline Lanes broadcast(float x) {
  return {_mm512_set1_ps(x)};
}
inline Lanes load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline Lanes load_first(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first_lanes(n), p)};
}
inline void store(float* p, Lanes a) {
  _mm512_storeu_ps(p, a.v);
}
inline void store_first(float* p, Lanes a, int n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), a.v);
}
inline Lanes load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Lanes load_bf16(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void store_f16(uint16_t* p, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store_bf16(uint16_t* p, Lanes a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline Lanes operator-(Lanes a) {
  return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))};
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Lanes max(Lanes a, Lanes b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Lanes min(Lanes a, Lanes b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline Lanes abs(Lanes a) {
  return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)};
}
inline Lanes copysign(Lanes magnitude, Lanes sign) {
  return {_mm512_or_ps(abs(magnitude).v, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign.v))};
}
inline Lanes select_less(Lanes a, Lanes b, Lanes x, Lanes y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v)};
}
inline Lanes keep_range(Lanes x, int begin, int end, float other) {
  const __mmask16 mask = static_cast<__mmask16>(first_lanes(end) & ~first_lanes(begin));
  return {_mm512_mask_blend_ps(mask, _mm512_set1_ps(other), x.v)};
}
inline Lanes pow2(Lanes t) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(t.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(0x3f800000)))};
}

inline float sum(Lanes a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest(Lanes a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline float fma(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

}  // namespace vedette::ops::cpu::avx512
