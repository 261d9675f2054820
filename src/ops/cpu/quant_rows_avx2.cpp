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
void put_values16(const __m256i* q, std::byte* out) {
  for (int i = 0; i < 2; ++i) {
    const __m256i a = _mm256_shuffle_epi32(q[2 * i], 0xd8), b = _mm256_shuffle_epi32(q[2 * i + 1], 0xd8);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * i), words);
  }
}

void put_group(const __m256i* x, bool narrow, std::byte* record) {
  const Scale scale = group_scale(x, narrow ? 127.0f : 32639.0f);
  const __m256 valid = _mm256_cmp_ps(scale.inverse, _mm256_setzero_ps(), _CMP_NEQ_UQ);
  __m256i q[4];
  for (int i = 0; i < 4; ++i) {
    const __m256 product = _mm256_mul_ps(_mm256_castsi256_ps(x[i]), scale.inverse);
    q[i] = _mm256_cvtps_epi32(_mm256_and_ps(product, valid));
  }
  const int32_t first = -sum_of(_mm256_add_epi32(q[0], q[1])), second = -sum_of(_mm256_add_epi32(q[2], q[3]));
  const int32_t sums[3] = {first, second, first + second};
  narrow ? put_values8(q, record) : put_values16(q, record);
  record += narrow ? kGroup : 2 * kGroup;
  std::memcpy(record, &scale.scale, 4);
  std::memcpy(record + 4, sums, sizeof sums);
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

}  // namespace

void prepare_row_avx2(Compute compute, const float* values, int64_t cols, std::byte* prepared) {
  if (compute == Compute::kF32) return;
  const bool narrow = compute == Compute::kI8;
  std::byte* record = prepared;
  std::byte* rounded = prepared + rounded_offset(cols);
  for (int64_t k = 0; k < cols; k += kGroup) {
    const int64_t n = cols - k < kGroup ? cols - k : kGroup;
    __m256i x[4];
    load_group(values + k, n, x);
    put_group(x, narrow, record);
    record += narrow ? kRecord8 : kRecord16;
    if (!narrow) continue;
    alignas(32) __m256i bf16[4];
    for (int i = 0; i < 4; ++i) bf16[i] = round_bf16(x[i]);
    std::memcpy(rounded + 4 * k, bf16, static_cast<size_t>(n) * sizeof(float));
  }
}

}  // namespace vedette::ops::cpu
