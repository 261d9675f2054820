// Activations to integers with NEON; int16 values as digits. The portable version says what it computes.
#include <arm_neon.h>

#include <cstring>

#include "ops/cpu/lanes_neon.h"
#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

constexpr float kSmallestNormal = 0x1p-126f;
constexpr int kFours = kGroup / 4;

struct Scale {
  float scale, inverse;  // inverse 0: every integer is 0
};

Scale group_scale(const float32x4_t* x, float limit) {
  uint32x4_t most = vdupq_n_u32(0);
  for (int i = 0; i < kFours; ++i)
    most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(x[i]), vdupq_n_u32(0x7fffffffu)));
  const float scale = vget_lane_f32(vreinterpret_f32_u32(vdup_n_u32(vmaxvq_u32(most))), 0) / limit;
  if (!(scale - scale == 0.0f)) return {scale, 0.0f};  // infinity or not a number
  if (scale < kSmallestNormal) return {0.0f, 0.0f};
  return {scale, 1.0f / scale};
}

void load_group(const float* values, int64_t n, float32x4_t* x) {
  float padded[kGroup] = {};
  if (n < kGroup) {
    std::memcpy(padded, values, static_cast<size_t>(n) * sizeof(float));
    values = padded;
  }
  for (int i = 0; i < kFours; ++i) x[i] = vld1q_f32(values + 4 * i);
}

// The low byte of each integer.
void put_low_bytes(const int32x4_t* q, std::byte* out) {
  for (int i = 0; i < kFours; i += 4) {
    const int16x8_t first = vcombine_s16(vmovn_s32(q[i]), vmovn_s32(q[i + 1]));
    const int16x8_t second = vcombine_s16(vmovn_s32(q[i + 2]), vmovn_s32(q[i + 3]));
    vst1q_s8(reinterpret_cast<int8_t*>(out) + 4 * i, vcombine_s8(vmovn_s16(first), vmovn_s16(second)));
  }
}

template <bool narrow>
void put_group(const float32x4_t* x, std::byte* record) {
  const Scale scale = group_scale(x, narrow ? 127.0f : 32639.0f);
  int32x4_t q[kFours];
  // Where the inverse is 0 a product is 0 or not a number, which converts to 0.
  for (int i = 0; i < kFours; ++i) q[i] = vcvtnq_s32_f32(vmulq_n_f32(x[i], scale.inverse));
  int32_t minus[3];
  for (int half = 0; half < 2; ++half) {
    const int32x4_t* part = q + 4 * half;
    minus[half] = -vaddvq_s32(vaddq_s32(vaddq_s32(part[0], part[1]), vaddq_s32(part[2], part[3])));
  }
  minus[2] = minus[0] + minus[1];
  const float sums[3] = {static_cast<float>(minus[0]), static_cast<float>(minus[1]), static_cast<float>(minus[2])};
  put_low_bytes(q, record);
  record += kGroup;
  if constexpr (!narrow) {
    // x = 256 high + low, both in -128..127: what rounding to the low byte leaves.
    for (int32x4_t& four : q) four = vshrq_n_s32(vaddq_s32(four, vdupq_n_s32(128)), 8);
    put_low_bytes(q, record);
    record += kGroup;
  }
  std::memcpy(record, &scale.scale, 4);
  std::memcpy(record + kMinusCounts, minus, sizeof minus);
  std::memcpy(record + kMinusSums, sums, sizeof sums);
}

template <bool narrow>
void put_row(const float* values, int64_t cols, std::byte* record) {
  for (int64_t k = 0; k < cols; k += kGroup, record += narrow ? kRecord8 : kRecord16) {
    float32x4_t x[kFours];
    load_group(values + k, cols - k < kGroup ? cols - k : kGroup, x);
    put_group<narrow>(x, record);
  }
}

}  // namespace

void round_row_neon(const float* values, int64_t cols, float* rounded) {
  for (int64_t k = 0; k < cols; k += kGroup) {
    const int64_t n = cols - k < kGroup ? cols - k : kGroup;
    float32x4_t x[kFours];
    load_group(values + k, n, x);
    for (float32x4_t& four : x)
      four = vreinterpretq_f32_u32(vandq_u32(neon::round_bf16(four), vdupq_n_u32(0xffff0000u)));
    std::memcpy(rounded + k, x, static_cast<size_t>(n) * sizeof(float));
  }
}

void prepare_digits_neon(Compute compute, const float* values, int64_t cols, std::byte* prepared) {
  if (compute == Compute::kI8) put_row<true>(values, cols, prepared);
  if (compute == Compute::kI16) put_row<false>(values, cols, prepared);
}

}  // namespace vedette::ops::cpu
