// Kernels for NEON with the dot product of signed bytes (Armv8.2 DotProd): a tile is two halves of 8 outputs.
#include <arm_neon.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

struct NeonFloats {
  float32x4_t lo, hi;
};
struct NeonWords {
  uint32x4_t lo, hi;
};

struct Neon {
  static constexpr int kLanes = 8;
  static constexpr int kMaxRows = 4;
  using F = NeonFloats;
  using I = NeonWords;

  static F constant(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
  static F zero() { return constant(0.0f); }
  static F broadcast(const std::byte* data) {
    float value;
    std::memcpy(&value, data, sizeof value);
    return constant(value);
  }
  static I dwords(uint32_t value) { return {vdupq_n_u32(value), vdupq_n_u32(value)}; }
  static I zero_word() { return dwords(0); }
  static uint32_t word(const std::byte* data) {
    uint32_t value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  static I broadcast_word(const std::byte* data) { return dwords(word(data)); }
  static I bytes(uint32_t value) { return dwords(value * 0x01010101u); }

  static const uint8_t* as_bytes(const std::byte* data) { return reinterpret_cast<const uint8_t*>(data); }
  static uint16x8_t load_halves(const std::byte* data) { return vreinterpretq_u16_u8(vld1q_u8(as_bytes(data))); }
  static I load(const std::byte* data) {
    return {vreinterpretq_u32_u8(vld1q_u8(as_bytes(data))), vreinterpretq_u32_u8(vld1q_u8(as_bytes(data + 16)))};
  }
  static I load_u8(const std::byte* data) {
    const uint16x8_t wide = vmovl_u8(vld1_u8(as_bytes(data)));
    return {vmovl_u16(vget_low_u16(wide)), vmovl_u16(vget_high_u16(wide))};
  }
  static I load_s8(const std::byte* data) {
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(vld1_u8(as_bytes(data))));
    return {vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(wide))),
            vreinterpretq_u32_s32(vmovl_s16(vget_high_s16(wide)))};
  }
  static F load_f32(const std::byte* data) {
    const I bits = load(data);
    return {vreinterpretq_f32_u32(bits.lo), vreinterpretq_f32_u32(bits.hi)};
  }
  static F load_f16(const std::byte* data) {
    const float16x8_t half = vreinterpretq_f16_u16(load_halves(data));
    return {vcvt_f32_f16(vget_low_f16(half)), vcvt_f32_f16(vget_high_f16(half))};
  }
  static F load_bf16(const std::byte* data) {
    const uint16x8_t half = load_halves(data);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(half), 16)),
            vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(half), 16))};
  }
  static void store(float* out, F x) {
    vst1q_f32(out, x.lo);
    vst1q_f32(out + 4, x.hi);
  }

  static F mul(F a, F b) { return {vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)}; }
  static F fma(F a, F b, F c) { return {vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)}; }
  static F fms(F a, F b, F c) { return fma(a, b, {vnegq_f32(c.lo), vnegq_f32(c.hi)}); }
  static F fnma(F a, F b, F c) { return {vfmsq_f32(c.lo, a.lo, b.lo), vfmsq_f32(c.hi, a.hi, b.hi)}; }
  static void add_product(F& acc, F weight, const std::byte* a) { acc = fma(weight, broadcast(a), acc); }
  static F to_float(I x) {
    return {vcvtq_f32_s32(vreinterpretq_s32_u32(x.lo)), vcvtq_f32_s32(vreinterpretq_s32_u32(x.hi))};
  }

  static I bit_and(I a, I b) { return {vandq_u32(a.lo, b.lo), vandq_u32(a.hi, b.hi)}; }
  static I or_and(I a, I b, I mask) {
    return {vorrq_u32(a.lo, vandq_u32(b.lo, mask.lo)), vorrq_u32(a.hi, vandq_u32(b.hi, mask.hi))};
  }
  template <int n>
  static uint32x4_t shift_four(uint32x4_t x) {
    if constexpr (n > 0)
      return vshlq_n_u32(x, n);
    else
      return vshrq_n_u32(x, -n);
  }
  template <int n>
  static uint32x4_t shift_eight(uint32x4_t x) {
    if constexpr (n > 0)
      return vreinterpretq_u32_u16(vshlq_n_u16(vreinterpretq_u16_u32(x), n));
    else
      return vreinterpretq_u32_u16(vshrq_n_u16(vreinterpretq_u16_u32(x), -n));
  }
  template <int n>
  static I shift32(I x) {
    if constexpr (n == 0)
      return x;
    else
      return {shift_four<n>(x.lo), shift_four<n>(x.hi)};
  }
  template <int n>
  static I shift16(I x) {
    if constexpr (n == 0)
      return x;
    else
      return {shift_eight<n>(x.lo), shift_eight<n>(x.hi)};
  }
  static I add32(I a, I b) { return {vaddq_u32(a.lo, b.lo), vaddq_u32(a.hi, b.hi)}; }
  static I negative32(I x) {
    return {vreinterpretq_u32_s32(vnegq_s32(vreinterpretq_s32_u32(x.lo))),
            vreinterpretq_u32_s32(vnegq_s32(vreinterpretq_s32_u32(x.hi)))};
  }

  static constexpr bool kAddsBytes = true, kDigits = true;
  static I minus_128(I q) {
    const uint32x4_t sign = vdupq_n_u32(0x80808080u);
    return {veorq_u32(q.lo, sign), veorq_u32(q.hi, sign)};
  }
  static uint32x4_t dot(uint32x4_t sum, uint32x4_t q, int8x16_t a) {
    return vreinterpretq_u32_s32(vdotq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s8_u32(q), a));
  }
  static void add_bytes(I& sum, I q, const std::byte* values) {
    const int8x16_t a = vreinterpretq_s8_u32(vdupq_n_u32(word(values)));
    sum = {dot(sum.lo, q.lo, a), dot(sum.hi, q.hi, a)};
  }
};

#include "ops/cpu/matmul_kernel-inl.h"

}  // namespace

constinit const MatmulKernels kNeonKernels = kernel_table<Neon>(prepare_digits_neon, round_row_neon);

}  // namespace vedette::ops::cpu
