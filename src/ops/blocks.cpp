#include "ops/blocks.h"

#include <cstring>

#include "base/float16.h"

namespace vedette::ops {
namespace {

constexpr size_t kSchemes = static_cast<size_t>(Scheme::kMlxAffine) + 1;

// Byte offsets inside the GGUF blocks.
struct Offsets {
  int d = 0, dmin = 0, low = 0, high = 0, scales = 0;
};

constexpr std::array<SchemeLayout, kSchemes> kLayouts = {{
    {.block = 1, .block_bytes = 4},
    {.block = 1, .block_bytes = 2},
    {.block = 1, .block_bytes = 2},
    {.block = 32, .block_bytes = 18, .bits = 4, .zero = 8},
    {.block = 32, .block_bytes = 20, .bits = 4, .has_offset = true},
    {.block = 32, .block_bytes = 22, .bits = 5, .zero = 16},
    {.block = 32, .block_bytes = 24, .bits = 5, .has_offset = true},
    {.block = 32, .block_bytes = 34, .bits = 8, .zero = 128},
    {.block = 256, .block_bytes = 84, .bits = 2, .step = 16, .has_offset = true, .form = ScaleForm::kSuperNibbles},
    {.block = 256, .block_bytes = 110, .bits = 3, .zero = 4, .step = 16, .form = ScaleForm::kSuperSigned},
    {.block = 256, .block_bytes = 144, .bits = 4, .has_offset = true, .form = ScaleForm::kSuperUnsigned},
    {.block = 256, .block_bytes = 176, .bits = 5, .has_offset = true, .form = ScaleForm::kSuperUnsigned},
    {.block = 256, .block_bytes = 210, .bits = 6, .zero = 32, .step = 16, .form = ScaleForm::kSuperSigned},
    {.block = 32, .has_offset = true},
}};

constexpr std::array<Offsets, kSchemes> kOffsets = {{
    {},
    {},
    {},
    {.d = 0, .low = 2},                                       // Q4_0
    {.d = 0, .dmin = 2, .low = 4},                            // Q4_1
    {.d = 0, .low = 6, .high = 2},                            // Q5_0
    {.d = 0, .dmin = 2, .low = 8, .high = 4},                 // Q5_1
    {.d = 0, .low = 2},                                       // Q8_0
    {.d = 80, .dmin = 82, .low = 16, .scales = 0},            // Q2_K
    {.d = 108, .low = 32, .high = 0, .scales = 96},           // Q3_K
    {.d = 0, .dmin = 2, .low = 16, .scales = 4},              // Q4_K
    {.d = 0, .dmin = 2, .low = 48, .high = 16, .scales = 4},  // Q5_K
    {.d = 208, .low = 0, .high = 128, .scales = 192},         // Q6_K
    {},
}};

uint16_t load_u16(const std::byte* data) {
  uint16_t value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

uint8_t u8(std::byte value) {
  return static_cast<uint8_t>(value);
}

// Columns 0..15 in the low nibbles, 16..31 in the high ones.
void unpack_split_nibbles(const std::byte* low, uint8_t* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = u8(low[i]) & 15;
    out[16 + i] = u8(low[i]) >> 4;
  }
}

// 32 consecutive fields of `bits` bits in a little-endian stream, which fill 4 * bits bytes.
void unpack_stream(const std::byte* data, int bits, uint8_t* out) {
  if (bits == 8) {
    std::memcpy(out, data, kGroup);
    return;
  }
  const uint32_t mask = (1u << bits) - 1;
  for (int i = 0; i < kGroup; i += 8) {  // 8 fields fill `bits` bytes
    uint64_t word = 0;
    std::memcpy(&word, data, static_cast<size_t>(bits));
    for (int j = 0; j < 8; ++j) out[i + j] = static_cast<uint8_t>((word >> (j * bits)) & mask);
    data += bits;
  }
}

// Group `part` (0..7) of a K-quant block.
void unpack_super_group(Scheme scheme, const std::byte* block, int part, uint8_t* out) {
  const Offsets& at = kOffsets[static_cast<size_t>(scheme)];
  const std::byte* low = block + at.low;
  const std::byte* high = block + at.high;
  switch (scheme) {
    case Scheme::kQ2_K:
    case Scheme::kQ3_K:
      low += 32 * (part / 4);
      for (int i = 0; i < kGroup; ++i) out[i] = (u8(low[i]) >> (2 * (part % 4))) & 3;
      if (scheme == Scheme::kQ3_K)
        for (int i = 0; i < kGroup; ++i) out[i] |= static_cast<uint8_t>(((u8(high[i]) >> part) & 1) << 2);
      return;
    case Scheme::kQ6_K:
      low += 64 * (part / 4) + 32 * (part % 2);
      high += 32 * (part / 4);
      for (int i = 0; i < kGroup; ++i) {
        out[i] = static_cast<uint8_t>(((u8(low[i]) >> (4 * (part % 4 / 2))) & 15) |
                                      (((u8(high[i]) >> (2 * (part % 4))) & 3) << 4));
      }
      return;
    default:  // Q4_K, Q5_K
      low += 32 * (part / 2);
      for (int i = 0; i < kGroup; ++i) out[i] = (u8(low[i]) >> (4 * (part % 2))) & 15;
      if (scheme == Scheme::kQ5_K)
        for (int i = 0; i < kGroup; ++i) out[i] |= static_cast<uint8_t>(((u8(high[i]) >> part) & 1) << 4);
      return;
  }
}

// Q4_K and Q5_K: eight 6-bit scales and offsets in 12 bytes. Bytes 0-3 and 4-7 hold the first four of each; the upper
// two bits of those bytes and the nibbles of bytes 8-11 make the last four.
void unpack_scales_12(const std::byte* packed, SuperScales& out) {
  for (int i = 0; i < 4; ++i) {
    const int scale = u8(packed[i]), offset = u8(packed[4 + i]), upper = u8(packed[8 + i]);
    out.scale[i] = static_cast<int8_t>(scale & 63);
    out.offset[i] = static_cast<uint8_t>(offset & 63);
    out.scale[4 + i] = static_cast<int8_t>((upper & 15) | ((scale >> 6) << 4));
    out.offset[4 + i] = static_cast<uint8_t>((upper >> 4) | ((offset >> 6) << 4));
  }
}

// Q3_K: sixteen 6-bit scales minus 32; low nibbles in bytes 0-7, upper two bits in bytes 8-11.
void unpack_scales_q3(const std::byte* packed, SuperScales& out) {
  for (int i = 0; i < 16; ++i) {
    const int low = (u8(packed[i % 8]) >> (4 * (i / 8))) & 15;
    const int high = (u8(packed[8 + i % 4]) >> (2 * (i / 4))) & 3;
    out.scale[i] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

}  // namespace

const SchemeLayout& layout_of(Scheme scheme) {
  return kLayouts[static_cast<size_t>(scheme)];
}

int64_t stored_row_bytes(const HostMatrix& matrix) {
  if (matrix.scheme != Scheme::kMlxAffine) return row_bytes(matrix.scheme, matrix.cols);
  return matrix.cols % kGroup == 0 ? matrix.cols / kGroup * 4 * matrix.bits : 0;
}

namespace {

void unpack_q8_0(const std::byte* integers, uint8_t* out) {
  for (int i = 0; i < kGroup; ++i) out[i] = u8(integers[i]) ^ 0x80;  // signed + 128
}

void unpack_fifth_bits(const std::byte* bits, uint8_t* out) {
  uint32_t high;
  std::memcpy(&high, bits, sizeof high);
  for (int i = 0; i < kGroup; ++i) out[i] |= static_cast<uint8_t>(((high >> i) & 1) << 4);
}

}  // namespace

void unpack_groups(const HostMatrix& matrix, const std::byte* row, int64_t group, int64_t count, uint8_t* out) {
  const int64_t end = group + count;
  if (matrix.scheme == Scheme::kMlxAffine) {
    for (int64_t g = group; g < end; ++g, out += kGroup) unpack_stream(row + g * 4 * matrix.bits, matrix.bits, out);
    return;
  }
  const SchemeLayout& layout = layout_of(matrix.scheme);
  const int64_t block_bytes = layout.block_bytes;
  if (layout.block == kSuperBlock) {
    for (int64_t g = group; g < end; ++g, out += kGroup)
      unpack_super_group(matrix.scheme, row + g / 8 * block_bytes, static_cast<int>(g % 8), out);
    return;
  }
  const Offsets& at = kOffsets[static_cast<size_t>(matrix.scheme)];
  if (layout.bits == 8) {
    for (int64_t g = group; g < end; ++g, out += kGroup) unpack_q8_0(row + g * block_bytes + at.low, out);
    return;
  }
  for (int64_t g = group; g < end; ++g, out += kGroup) {
    unpack_split_nibbles(row + g * block_bytes + at.low, out);
    if (layout.bits == 5) unpack_fifth_bits(row + g * block_bytes + at.high, out);
  }
}

void unpack_group(const HostMatrix& matrix, const std::byte* row, int64_t group, uint8_t* out) {
  unpack_groups(matrix, row, group, 1, out);
}

SuperScales super_scales(Scheme scheme, const std::byte* block) {
  const Offsets& at = kOffsets[static_cast<size_t>(scheme)];
  const std::byte* packed = block + at.scales;
  SuperScales out;
  out.d = load_u16(block + at.d);
  if (layout_of(scheme).has_offset) out.dmin = load_u16(block + at.dmin);
  switch (scheme) {
    case Scheme::kQ2_K:
      for (int i = 0; i < 16; ++i) {
        out.scale[i] = static_cast<int8_t>(u8(packed[i]) & 15);
        out.offset[i] = u8(packed[i]) >> 4;
      }
      break;
    case Scheme::kQ3_K:
      unpack_scales_q3(packed, out);
      break;
    case Scheme::kQ6_K:
      std::memcpy(out.scale.data(), packed, 16);
      break;
    default:
      unpack_scales_12(packed, out);
      break;
  }
  return out;
}

bool scales_finite(Scheme scheme, const std::byte* row, int64_t cols) {
  constexpr unsigned kExponent = 0x7c00;
  const SchemeLayout& layout = layout_of(scheme);
  const Offsets& at = kOffsets[static_cast<size_t>(scheme)];
  const int64_t block_bytes = layout.block_bytes;
  const int64_t blocks = cols / layout.block;
  const std::byte* d = row + at.d;
  const std::byte* dmin = row + (layout.has_offset ? at.dmin : at.d);
  unsigned infinite = 0;
  for (int64_t b = 0; b < blocks; ++b, d += block_bytes, dmin += block_bytes) {
    infinite |= static_cast<unsigned>((load_u16(d) & kExponent) == kExponent);
    infinite |= static_cast<unsigned>((load_u16(dmin) & kExponent) == kExponent);
  }
  return infinite == 0;
}

float load_element(DType type, const std::byte* data, int64_t index) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, data + index * 4, sizeof value);
    return value;
  }
  const uint16_t bits = load_u16(data + index * 2);
  return type == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

StepScale step_scale(const HostMatrix& matrix, int64_t stored_row, int64_t index) {
  if (matrix.scheme == Scheme::kMlxAffine) {
    const int64_t at = stored_row * (matrix.cols / matrix.group) + index;
    return {load_element(matrix.side_type, matrix.scales.data(), at),
            load_element(matrix.side_type, matrix.biases.data(), at)};
  }
  const SchemeLayout& layout = layout_of(matrix.scheme);
  const std::byte* row = matrix.data.data() + stored_row * row_bytes(matrix.scheme, matrix.cols);
  const int64_t steps_per_block = layout.block / layout.step;
  const std::byte* block = row + index / steps_per_block * layout.block_bytes;
  if (layout.form == ScaleForm::kPlain) {
    const Offsets& at = kOffsets[static_cast<size_t>(matrix.scheme)];
    return {f16_to_float(load_u16(block + at.d)), layout.has_offset ? f16_to_float(load_u16(block + at.dmin)) : 0.0f};
  }
  const SuperScales scales = super_scales(matrix.scheme, block);
  const auto step = static_cast<size_t>(index % steps_per_block);
  return {f16_to_float(scales.d) * static_cast<float>(scales.scale[step]),
          -(f16_to_float(scales.dmin) * static_cast<float>(scales.offset[step]))};
}

}  // namespace vedette::ops
