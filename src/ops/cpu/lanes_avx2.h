// Sixteen float lanes in two AVX2 registers; see lanes_portable.h for what each name means.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace vedette::ops::cpu::avx2 {

struct Lanes {
  __m256 lo, hi;
};

inline constexpr int kTilePairs = 6;
inline constexpr int kScoreVectors = 1;
inline constexpr int kValueVectors = 1;
inline constexpr int kFewPairs = 2;
inline constexpr int kFewPairsValueVectors = 2;

// All ones in the lanes below n, of the eight lanes that start at `first`.
inline __m256i lanes_below(int n, int first) {
  const __m256i index = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), index);
}

inline Lanes broadcast(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline Lanes load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline Lanes load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, lanes_below(n, 0)), _mm256_maskload_ps(p + 8, lanes_below(n, 8))};
}
inline void store(float* p, Lanes a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline void store_first(float* p, Lanes a, int n) {
  _mm256_maskstore_ps(p, lanes_below(n, 0), a.lo);
  _mm256_maskstore_ps(p + 8, lanes_below(n, 8), a.hi);
}
inline __m128i load_half(const uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline Lanes load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(load_half(p)), _mm256_cvtph_ps(load_half(p + 8))};
}
inline __m256 widen_bf16(__m128i half) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
inline Lanes load_bf16(const uint16_t* p) {
  return {widen_bf16(load_half(p)), widen_bf16(load_half(p + 8))};
}
inline void store_f16(uint16_t* p, Lanes a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
inline __m256i round_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}
inline void store_bf16(uint16_t* p, Lanes a) {
  const __m256i packed = _mm256_packus_epi32(round_bf16(a.lo), round_bf16(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline Lanes operator-(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Lanes max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline Lanes min(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline Lanes abs(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
inline Lanes copysign(Lanes magnitude, Lanes sign) {
  const __m256 bit = _mm256_set1_ps(-0.0f);
  const Lanes positive = abs(magnitude);
  return {_mm256_or_ps(positive.lo, _mm256_and_ps(bit, sign.lo)),
          _mm256_or_ps(positive.hi, _mm256_and_ps(bit, sign.hi))};
}
inline Lanes select_less(Lanes a, Lanes b, Lanes x, Lanes y) {
  return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
inline __m256 keep_eight(__m256 x, int begin, int end, int first, __m256 other) {
  const __m256i keep = _mm256_andnot_si256(lanes_below(begin, first), lanes_below(end, first));
  return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(keep));
}
inline Lanes keep_range(Lanes x, int begin, int end, float other) {
  const __m256 fill = _mm256_set1_ps(other);
  return {keep_eight(x.lo, begin, end, 0, fill), keep_eight(x.hi, begin, end, 8, fill)};
}
inline __m256 pow2_eight(__m256 t) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(0x3f800000)));
}
inline Lanes pow2(Lanes t) {
  return {pow2_eight(t.lo), pow2_eight(t.hi)};
}

inline float sum(Lanes a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest(Lanes a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline float fma(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

}  // namespace vedette::ops::cpu::avx2
