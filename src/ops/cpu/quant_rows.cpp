// Activations to integers, one scale per group of 32, in plain C++.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/float16.h"
#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

// x0 x2 x1 x3: see kRecord16.
constexpr int kOrder16[4] = {0, 2, 1, 3};

struct GroupScale {
  float scale = 0, inverse = 0;  // inverse 0: every integer is 0
};

// scale = max|x| / limit. Not-a-number and infinity are the largest bit patterns, so they reach the scale. Where the
// inverse would overflow (max|x| below 1.5e-36) the group counts as zero.
GroupScale group_scale(const float* values, int n, float limit) {
  uint32_t largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  const float scale = std::bit_cast<float>(largest) / limit;
  if (!std::isfinite(scale)) return {scale, 0};
  if (scale < std::numeric_limits<float>::min()) return {0, 0};
  return {scale, 1.0f / scale};
}

template <class T>
void put_record(const int32_t* integers, float scale, std::byte* out) {
  T stored[kGroup];
  int32_t sums[3] = {0, 0, 0};
  for (int i = 0; i < kGroup; ++i) {
    const int from = sizeof(T) == 2 ? i / 4 * 4 + kOrder16[i % 4] : i;
    stored[i] = static_cast<T>(integers[from]);
    sums[i / 16] -= integers[i];
  }
  sums[2] = sums[0] + sums[1];
  const float as_floats[3] = {static_cast<float>(sums[0]), static_cast<float>(sums[1]), static_cast<float>(sums[2])};
  std::memcpy(out, stored, sizeof stored);
  out += sizeof stored;
  std::memcpy(out, &scale, sizeof scale);
  std::memcpy(out + kMinusCounts, sums, sizeof sums);
  std::memcpy(out + kMinusSums, as_floats, sizeof as_floats);
}

}  // namespace

void prepare_row_portable(Compute compute, const float* values, int64_t cols, std::byte* prepared) {
  if (compute == Compute::kF32) return;
  const bool narrow = compute == Compute::kI8;
  for (int64_t k = 0; k < cols; k += kGroup) {
    const int n = static_cast<int>(std::min<int64_t>(kGroup, cols - k));
    const GroupScale group = group_scale(values + k, n, narrow ? 127.0f : 32639.0f);
    int32_t integers[kGroup] = {};
    if (group.inverse != 0)
      for (int i = 0; i < n; ++i) integers[i] = static_cast<int32_t>(std::nearbyint(values[k + i] * group.inverse));
    std::byte* record = prepared + k / kGroup * (narrow ? kRecord8 : kRecord16);
    narrow ? put_record<int8_t>(integers, group.scale, record) : put_record<int16_t>(integers, group.scale, record);
  }
}

void round_row_portable(const float* values, int64_t cols, float* rounded) {
  for (int64_t k = 0; k < cols; ++k) rounded[k] = bf16_to_float(float_to_bf16(values[k]));
}

}  // namespace vedette::ops::cpu
