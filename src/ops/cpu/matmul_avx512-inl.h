// 16 outputs in one 512-bit register. Included by a file inside its unnamed namespace; the dot-product instructions
// are used where that file is compiled for them. Needs included before: <immintrin.h>, <cstring>.

struct Avx512 {
  static constexpr int kLanes = 16;
#ifdef __AVX512VNNI__
  static constexpr int kMaxRows = 8;
#else
  static constexpr int kMaxRows = 2;  // AVX-512 without VNNI is rare: compiled small rather than fast
#endif
  using F = __m512;
  using I = __m512i;

  static F zero() { return _mm512_setzero_ps(); }
  static I zero_word() { return _mm512_setzero_si512(); }
  static F constant(float value) { return _mm512_set1_ps(value); }
  static F broadcast(const std::byte* data) {
    float value;
    std::memcpy(&value, data, sizeof value);
    return _mm512_set1_ps(value);
  }
  static I broadcast_word(const std::byte* data) {
    int32_t value;
    std::memcpy(&value, data, sizeof value);
    return _mm512_set1_epi32(value);
  }
  static I bytes(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  static I words(int value) { return _mm512_set1_epi16(static_cast<int16_t>(value)); }
  static I dwords(int value) { return _mm512_set1_epi32(value); }

  static I load(const std::byte* data) { return _mm512_loadu_si512(data); }
  static __m128i load_bytes(const std::byte* data) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data)); }
  static __m256i load_halves(const std::byte* data) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
  }
  static I load_u8(const std::byte* data) { return _mm512_cvtepu8_epi32(load_bytes(data)); }
  static I load_s8(const std::byte* data) { return _mm512_cvtepi8_epi32(load_bytes(data)); }
  static F load_f32(const std::byte* data) { return _mm512_loadu_ps(data); }
  static F load_f16(const std::byte* data) { return _mm512_cvtph_ps(load_halves(data)); }
  static F load_bf16(const std::byte* data) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_halves(data)), 16));
  }
  static void store(float* out, F x) { _mm512_storeu_ps(out, x); }
  static void store(std::byte* out, I x) { _mm512_storeu_si512(out, x); }

  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F fms(F a, F b, F c) { return _mm512_fmsub_ps(a, b, c); }
  static F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static void add_product(F& acc, F weight, const std::byte* a) { acc = fma(weight, broadcast(a), acc); }
  static F to_float(I x) { return _mm512_cvtepi32_ps(x); }

  static I add32(I a, I b) { return _mm512_add_epi32(a, b); }
  static I sub8(I a, I b) { return _mm512_sub_epi8(a, b); }
  static I bit_and(I a, I b) { return _mm512_and_si512(a, b); }
  static I or_and(I a, I b, I mask) { return _mm512_ternarylogic_epi32(a, b, mask, 0xf8); }
  template <int n>
  static I shift16(I x) {
    if constexpr (n == 0)
      return x;
    else if constexpr (n > 0)
      return _mm512_slli_epi16(x, n);
    else
      return _mm512_srli_epi16(x, -n);
  }
  template <int n>
  static I shift32(I x) {
    if constexpr (n == 0)
      return x;
    else if constexpr (n > 0)
      return _mm512_slli_epi32(x, n);
    else
      return _mm512_srli_epi32(x, -n);
  }

#ifdef __AVX512VNNI__
  static constexpr bool kAddsBytes = true, kDigits = true;
  static void add_bytes(I& sum, I q, const std::byte* a) { sum = _mm512_dpbusd_epi32(sum, q, broadcast_word(a)); }
#else
  static constexpr bool kAddsBytes = false, kDigits = false;
  static I pair_bytes(I q, I a) { return _mm512_maddubs_epi16(q, a); }
  static I pair_words(I q, I a) { return _mm512_madd_epi16(q, a); }
  static I add16(I a, I b) { return _mm512_add_epi16(a, b); }
  static void add_words(I& sum, I q, const std::byte* a) { sum = add32(sum, pair_words(q, broadcast_word(a))); }
#endif
};
