// Kernels for AVX2 with FMA and F16C: a tile is two halves of 8 outputs.
#include <immintrin.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

struct Avx2 {
  static constexpr int kLanes = 8;
  static constexpr int kMaxRows = 4;
  using F = __m256;
  using I = __m256i;

  static F zero() { return _mm256_setzero_ps(); }
  static I zero_word() { return _mm256_setzero_si256(); }
  static F constant(float value) { return _mm256_set1_ps(value); }
  static F broadcast(const std::byte* data) {
    float value;
    std::memcpy(&value, data, sizeof value);
    return _mm256_set1_ps(value);
  }
  static I broadcast_word(const std::byte* data) {
    int32_t value;
    std::memcpy(&value, data, sizeof value);
    return _mm256_set1_epi32(value);
  }
  static I bytes(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  static I words(int value) { return _mm256_set1_epi16(static_cast<int16_t>(value)); }
  static I dwords(int value) { return _mm256_set1_epi32(value); }

  static I load(const std::byte* data) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data)); }
  static __m128i load_8(const std::byte* data) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(data)); }
  static __m128i load_16(const std::byte* data) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data)); }
  static I load_u8(const std::byte* data) { return _mm256_cvtepu8_epi32(load_8(data)); }
  static I load_s8(const std::byte* data) { return _mm256_cvtepi8_epi32(load_8(data)); }
  static F load_f32(const std::byte* data) { return _mm256_loadu_ps(reinterpret_cast<const float*>(data)); }
  static F load_f16(const std::byte* data) { return _mm256_cvtph_ps(load_16(data)); }
  static F load_bf16(const std::byte* data) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_16(data)), 16));
  }
  static void store(float* out, F x) { _mm256_storeu_ps(out, x); }
  static void store(std::byte* out, I x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), x); }

  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F fms(F a, F b, F c) { return _mm256_fmsub_ps(a, b, c); }
  static F fnma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static void add_product(F& acc, F weight, const std::byte* a) { acc = fma(weight, broadcast(a), acc); }
  static F to_float(I x) { return _mm256_cvtepi32_ps(x); }

  static I bit_and(I a, I b) { return _mm256_and_si256(a, b); }
  static I or_and(I a, I b, I mask) { return _mm256_or_si256(a, _mm256_and_si256(b, mask)); }
  template <int n>
  static I shift16(I x) {
    if constexpr (n == 0)
      return x;
    else if constexpr (n > 0)
      return _mm256_slli_epi16(x, n);
    else
      return _mm256_srli_epi16(x, -n);
  }
  template <int n>
  static I shift32(I x) {
    if constexpr (n == 0)
      return x;
    else if constexpr (n > 0)
      return _mm256_slli_epi32(x, n);
    else
      return _mm256_srli_epi32(x, -n);
  }

  static constexpr bool kAddsBytes = false, kDigits = false;
  static I pair_bytes(I q, I a) { return _mm256_maddubs_epi16(q, a); }
  static I pair_words(I q, I a) { return _mm256_madd_epi16(q, a); }
  // GCC postpones sums to where they are used, all products waiting in memory; this keeps each at its place.
  static I in_place(I x) {
    asm("" : "+x"(x));
    return x;
  }
  static I add16(I a, I b) { return in_place(_mm256_add_epi16(a, b)); }
  static I add32(I a, I b) { return in_place(_mm256_add_epi32(a, b)); }
  static void add_words(I& sum, I q, const std::byte* a) { sum = add32(sum, pair_words(q, broadcast_word(a))); }
};

#include "ops/cpu/matmul_kernel-inl.h"
#include "ops/cpu/matmul_kernel_avx2-inl.h"

}  // namespace

constinit const MatmulKernels kAvx2Kernels = avx2_table();

}  // namespace vedette::ops::cpu
