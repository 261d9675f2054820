// Activations to integers with AVX2; AVX-512 machines run it too. The portable version says what it computes.
#include <immintrin.h>

#include <cstring>

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

constexpr float kSmallestNormal = 0x1p-126f;

struct Scale {
  float scale;
  __m256 inverse;  // 0: every integer is 0
};

float largest_magnitude(const __m256i* x) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i m = _mm256_and_si256(x[0], magnitude);
  for (int i = 1; i < 4; ++i) m = _mm256_max_epu32(m, _mm256_and_si256(x[i], magnitude));
  __m128i n = _mm_max_epu32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
  n = _mm_max_epu32(n, _mm_shuffle_epi32(n, 0x4e));
  n = _mm_max_epu32(n, _mm_shuffle_epi32(n, 0xb1));
  return _mm_cvtss_f32(_mm_castsi128_ps(n));
}

Scale group_scale(const __m256i* x, float limit) {
  const float scale = largest_magnitude(x) / limit;
  if (!(scale - scale == 0.0f)) return {scale, _mm256_setzero_ps()};  // infinity or not a number
  if (scale < kSmallestNormal) return {0.0f, _mm256_setzero_ps()};
  return {scale, _mm256_set1_ps(1.0f / scale)};
}

int32_t sum_of(__m256i x) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

void load_group(const float* values, int64_t n, __m256i* x) {
  alignas(32) float padded[kGroup] = {};
  if (n < kGroup) {
    std::memcpy(padded, values, static_cast<size_t>(n) * sizeof(float));
    values = padded;
  }
  for (int i = 0; i < 4; ++i) x[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + 8 * i));
}

void put_values8(const __m256i* q, std::byte* out) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permutevar8x32_epi32(bytes, order));
}

// Each run of 4 columns as 0 2 1 3.
void put_words16(const __m256i* q, std::byte* out) {
  for (int i = 0; i < 2; ++i) {
    const __m256i a = _mm256_shuffle_epi32(q[2 * i], 0xd8), b = _mm256_shuffle_epi32(q[2 * i + 1], 0xd8);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * i), words);
  }
}

// x = 256 high + low, both in -128..127: the low byte, and what rounding to it leaves.
void put_digits16(const __m256i* q, std::byte* out) {
  __m256i low[4], high[4];
  for (int i = 0; i < 4; ++i) {
    low[i] = _mm256_srai_epi32(_mm256_slli_epi32(q[i], 24), 24);
    high[i] = _mm256_srai_epi32(_mm256_add_epi32(q[i], _mm256_set1_epi32(128)), 8);
  }
  put_values8(low, out);
  put_values8(high, out + kGroup);
}

using PutValues = void (*)(const __m256i* q, std::byte* out);

template <PutValues put_values, bool narrow>
void put_group(const __m256i* x, std::byte* record) {
  const Scale scale = group_scale(x, narrow ? 127.0f : 32639.0f);
  const __m256 valid = _mm256_cmp_ps(scale.inverse, _mm256_setzero_ps(), _CMP_NEQ_UQ);
  __m256i q[4];
  for (int i = 0; i < 4; ++i) {
    const __m256 product = _mm256_mul_ps(_mm256_castsi256_ps(x[i]), scale.inverse);
    q[i] = _mm256_cvtps_epi32(_mm256_and_ps(product, valid));
  }
  const int32_t first = -sum_of(_mm256_add_epi32(q[0], q[1])), second = -sum_of(_mm256_add_epi32(q[2], q[3]));
  const int32_t counts[3] = {first, second, first + second};
  const float sums[3] = {static_cast<float>(first), static_cast<float>(second), static_cast<float>(first + second)};
  put_values(q, record);
  record += narrow ? kGroup : 2 * kGroup;
  std::memcpy(record, &scale.scale, 4);
  std::memcpy(record + kMinusCounts, counts, sizeof counts);
  std::memcpy(record + kMinusSums, sums, sizeof sums);
}

// To bfloat16 and back, to nearest even; not-a-number stays so, quiet.
__m256i round_bf16(__m256i bits) {
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 x = _mm256_castsi256_ps(bits);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_and_si256(_mm256_blendv_epi8(rounded, quiet, nan), _mm256_set1_epi32(static_cast<int>(0xffff0000u)));
}

template <PutValues put_values, bool narrow>
void put_row(const float* values, int64_t cols, std::byte* record) {
  for (int64_t k = 0; k < cols; k += kGroup, record += narrow ? kRecord8 : kRecord16) {
    __m256i x[4];
    load_group(values + k, cols - k < kGroup ? cols - k : kGroup, x);
    put_group<put_values, narrow>(x, record);
  }
}

template <PutValues put_values16>
void prepare(Compute compute, const float* values, int64_t cols, std::byte* prepared) {
  if (compute == Compute::kI8) put_row<put_values8, true>(values, cols, prepared);
  if (compute == Compute::kI16) put_row<put_values16, false>(values, cols, prepared);
}

}  // namespace

void round_row_avx2(const float* values, int64_t cols, float* rounded) {
  for (int64_t k = 0; k < cols; k += kGroup) {
    const int64_t n = cols - k < kGroup ? cols - k : kGroup;
    alignas(32) __m256i x[4];
    load_group(values + k, n, x);
    for (__m256i& part : x) part = round_bf16(part);
    std::memcpy(rounded + k, x, static_cast<size_t>(n) * sizeof(float));
  }
}

void prepare_row_avx2(Compute compute, const float* values, int64_t cols, std::byte* prepared) {
  prepare<put_words16>(compute, values, cols, prepared);
}

void prepare_digits_avx2(Compute compute, const float* values, int64_t cols, std::byte* prepared) {
  prepare<put_digits16>(compute, values, cols, prepared);
}

}  // namespace vedette::ops::cpu
