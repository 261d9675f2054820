#include "weights/affine_pack.h"

#include <algorithm>
#include <cmath>

#include "ops/blocks.h"

namespace vedette::weights {
namespace {

// Appends integers of a fixed width to bytes, low bits first.
class BitStream {
 public:
  BitStream(std::span<uint8_t> out, int bits) : out_(out), bits_(bits) {}
  void put(uint32_t value) {
    pending_ |= static_cast<uint64_t>(value) << filled_;
    for (filled_ += bits_; filled_ >= 8; filled_ -= 8, pending_ >>= 8) out_[at_++] = static_cast<uint8_t>(pending_);
  }

 private:
  std::span<uint8_t> out_;
  int bits_;
  size_t at_ = 0;
  uint64_t pending_ = 0;
  int filled_ = 0;
};

struct ScaleBias {
  float scale = 0;
  float bias = 0;
};

ScaleBias choose(std::span<const float> group, float top) {
  constexpr float kSmallest = 1e-7f;
  const auto [low, high] = std::ranges::minmax(group);
  const bool low_is_edge = std::abs(low) > std::abs(high);
  const float step = std::max((high - low) / top, kSmallest);
  ScaleBias out{low_is_edge ? step : -step, 0};
  const float edge = low_is_edge ? low : high;
  const float multiple = std::rint(edge / out.scale);
  if (multiple != 0) out = {edge / multiple, edge};
  return out;
}

}  // namespace

void quantize_affine(std::span<const float> values, int bits, int group, const AffineRow& out) {
  const float top = static_cast<float>((1 << bits) - 1);
  BitStream stream(out.integers, bits);
  const auto width = static_cast<size_t>(group);
  for (size_t g = 0; g < values.size() / width; ++g) {
    const auto part = values.subspan(g * width, width);
    const ScaleBias chosen = choose(part, top);
    out.scales[g] = chosen.scale;
    out.biases[g] = chosen.bias;
    for (const float value : part) {
      const float level = std::rint((value - chosen.bias) / chosen.scale);
      stream.put(level >= 0 ? static_cast<uint32_t>(std::min(level, top)) : 0);  // NaN becomes 0
    }
  }
}

bool is_repackable(ops::Scheme scheme) {
  return scheme == ops::Scheme::kQ4_0 || scheme == ops::Scheme::kQ4_1 || scheme == ops::Scheme::kQ5_0 ||
         scheme == ops::Scheme::kQ5_1 || scheme == ops::Scheme::kQ8_0;
}

int repacked_bits(ops::Scheme scheme) {
  return ops::layout_of(scheme).bits;
}

void repack_affine(const ops::HostMatrix& matrix, int64_t row, const AffineRow& out) {
  const ops::SchemeLayout& layout = ops::layout_of(matrix.scheme);
  const std::byte* bytes = matrix.data.data() + row * ops::row_bytes(matrix.scheme, matrix.cols);
  BitStream stream(out.integers, layout.bits);
  uint8_t integers[ops::kGroup];
  for (int64_t g = 0; g < matrix.cols / ops::kGroup; ++g) {
    ops::unpack_group(matrix, bytes, g, integers);
    for (const uint8_t integer : integers) stream.put(integer);
    const ops::StepScale step = ops::step_scale(matrix, row, g);
    // The zero is a power of two, so the bias is exact.
    out.scales[static_cast<size_t>(g)] = step.scale;
    out.biases[static_cast<size_t>(g)] = step.offset - step.scale * static_cast<float>(layout.zero);
  }
}

}  // namespace vedette::weights
