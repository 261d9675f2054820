#include "ops/cpu/matmul_reference.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "base/float16.h"

namespace vedette::ops::reference {
namespace {

// Bytes of a stored block, read by position.
struct Block {
  const uint8_t* at;
  int byte(int i) const { return at[i]; }
  float half(int i) const { return f16_to_float(static_cast<uint16_t>(at[i] | at[i + 1] << 8)); }
  int bit(int i, int n) const { return (at[i] >> n) & 1; }
  int low(int i) const { return at[i] & 15; }
  int high(int i) const { return at[i] >> 4; }
};

Weight q4_0(Block b, int k) {
  return {b.half(0), (k < 16 ? b.low(2 + k) : b.high(2 + k - 16)) - 8, 0};
}
Weight q4_1(Block b, int k) {
  return {b.half(0), k < 16 ? b.low(4 + k) : b.high(4 + k - 16), b.half(2)};
}
Weight q5_0(Block b, int k) {
  const int low = k < 16 ? b.low(6 + k) : b.high(6 + k - 16);
  return {b.half(0), low + 16 * b.bit(2 + k / 8, k % 8) - 16, 0};
}
Weight q5_1(Block b, int k) {
  const int low = k < 16 ? b.low(8 + k) : b.high(8 + k - 16);
  return {b.half(0), low + 16 * b.bit(4 + k / 8, k % 8), b.half(2)};
}
Weight q8_0(Block b, int k) {
  return {b.half(0), static_cast<int8_t>(b.byte(2 + k)), 0};
}

// K-quants: block of 256. `half` and `within` are the 128 columns' index and the column inside them.
Weight q2_k(Block b, int k) {
  const int half = k / 128, within = k % 128, packed = b.byte(k / 16);
  const int q = (b.byte(16 + 32 * half + within % 32) >> (2 * (within / 32))) & 3;
  return {b.half(80) * static_cast<float>(packed & 15), q, -(b.half(82) * static_cast<float>(packed >> 4))};
}
Weight q3_k(Block b, int k) {
  const int half = k / 128, within = k % 128, s = k / 16;
  const int low = (b.byte(32 + 32 * half + within % 32) >> (2 * (within / 32))) & 3;
  const int q = low - (b.bit(k % 32, k / 32) ? 0 : 4);
  const int scale_low = s < 8 ? b.low(96 + s) : b.high(96 + s - 8);
  const int scale_high = (b.byte(104 + s % 4) >> (2 * (s / 4))) & 3;
  return {b.half(108) * static_cast<float>(scale_low + 16 * scale_high - 32), q, 0};
}
// Scale and offset `s` (0..7) of the 12 packed bytes at `at`.
void q45_scale(Block b, int at, int s, int& scale, int& offset) {
  if (s < 4) {
    scale = b.byte(at + s) % 64;
    offset = b.byte(at + 4 + s) % 64;
  } else {
    scale = b.low(at + 4 + s) + 16 * (b.byte(at + s - 4) / 64);
    offset = b.high(at + 4 + s) + 16 * (b.byte(at + s) / 64);
  }
}
Weight q4_k(Block b, int k) {
  int scale, offset;
  q45_scale(b, 4, k / 32, scale, offset);
  const int byte = 16 + 32 * (k / 64) + k % 32;
  const int q = k % 64 < 32 ? b.low(byte) : b.high(byte);
  return {b.half(0) * static_cast<float>(scale), q, -(b.half(2) * static_cast<float>(offset))};
}
Weight q5_k(Block b, int k) {
  int scale, offset;
  q45_scale(b, 4, k / 32, scale, offset);
  const int byte = 48 + 32 * (k / 64) + k % 32;
  const int q = (k % 64 < 32 ? b.low(byte) : b.high(byte)) + 16 * b.bit(16 + k % 32, k / 32);
  return {b.half(0) * static_cast<float>(scale), q, -(b.half(2) * static_cast<float>(offset))};
}
Weight q6_k(Block b, int k) {
  const int half = k / 128, within = k % 128;
  const int byte = 64 * half + within % 64;
  const int low = within < 64 ? b.low(byte) : b.high(byte);
  const int high = (b.byte(128 + 32 * half + within % 32) >> (2 * (within / 32))) & 3;
  const auto scale = static_cast<float>(static_cast<int8_t>(b.byte(192 + k / 16)));
  return {b.half(208) * scale, low + 16 * high - 32, 0};
}

struct Format {
  int block, bytes, step;
  Weight (*weight)(Block, int);
};

Format format_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kQ4_0:
      return {32, 18, 32, q4_0};
    case Scheme::kQ4_1:
      return {32, 20, 32, q4_1};
    case Scheme::kQ5_0:
      return {32, 22, 32, q5_0};
    case Scheme::kQ5_1:
      return {32, 24, 32, q5_1};
    case Scheme::kQ8_0:
      return {32, 34, 32, q8_0};
    case Scheme::kQ2_K:
      return {256, 84, 16, q2_k};
    case Scheme::kQ3_K:
      return {256, 110, 16, q3_k};
    case Scheme::kQ4_K:
      return {256, 144, 32, q4_k};
    case Scheme::kQ5_K:
      return {256, 176, 32, q5_k};
    case Scheme::kQ6_K:
      return {256, 210, 16, q6_k};
    default:
      return {0, 0, 32, nullptr};
  }
}

float side_value(DType type, const std::byte* data, int64_t index) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(data);
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, data + 4 * index, 4);
    return value;
  }
  const auto bits = static_cast<uint16_t>(bytes[2 * index] | bytes[2 * index + 1] << 8);
  return type == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

int64_t stored_index(const HostMatrix& matrix, int64_t row) {
  return matrix.row_map.empty() ? row : matrix.row_map[static_cast<size_t>(row)];
}

// MLX: bit `bits * k` onwards of the row's stream of little-endian words.
int mlx_integer(const HostMatrix& m, int64_t row, int64_t k) {
  const auto* words = reinterpret_cast<const uint8_t*>(m.data.data()) + row * m.cols * m.bits / 8;
  int value = 0;
  for (int i = 0; i < m.bits; ++i) {
    const int64_t bit = k * m.bits + i;
    value |= ((words[bit / 8] >> (bit % 8)) & 1) << i;
  }
  return value;
}

struct Rounded {
  std::vector<int> integers;
  std::vector<float> scales;  // per group of 32
};

Rounded round_row(const float* x, int64_t cols, int limit) {
  Rounded out{std::vector<int>(static_cast<size_t>(cols)), {}};
  for (int64_t k = 0; k < cols; k += 32) {
    float largest = 0;
    for (int64_t i = k; i < std::min(cols, k + 32); ++i)
      if (!(std::fabs(x[i]) <= largest)) largest = std::fabs(x[i]);  // a not-a-number stays
    for (int64_t i = k; i < std::min(cols, k + 32); ++i)
      if (std::isnan(x[i])) largest = x[i];
    float scale = largest / static_cast<float>(limit);
    if (std::isfinite(scale) && scale < 0x1p-126f) scale = 0;
    out.scales.push_back(scale);
    if (!std::isfinite(scale) || scale == 0) continue;
    const float inverse = 1.0f / scale;
    for (int64_t i = k; i < std::min(cols, k + 32); ++i)
      out.integers[static_cast<size_t>(i)] = static_cast<int>(std::nearbyint(x[i] * inverse));
  }
  return out;
}

float canonical(const std::vector<Weight>& w, const Rounded& a, int step, bool offsets) {
  float acc = 0;
  for (size_t k = 0; k < w.size(); k += static_cast<size_t>(step)) {
    int64_t sum = 0, activations = 0;
    for (size_t i = k; i < k + static_cast<size_t>(step); ++i) {
      sum += int64_t{w[i].integer} * a.integers[i];
      activations += a.integers[i];
    }
    const float s_a = a.scales[k / 32];
    acc = std::fma(w[k].scale * s_a, static_cast<float>(sum), acc);
    if (offsets) acc = std::fma(w[k].offset * s_a, static_cast<float>(activations), acc);
  }
  return acc;
}

float fused_in_order(const std::vector<float>& w, const float* a) {
  float acc = 0;
  for (size_t k = 0; k < w.size(); ++k) acc = std::fma(w[k], a[k], acc);
  return acc;
}

uint16_t random_half(std::mt19937& random, bool positive) {
  const float magnitude =
      std::ldexp(1.0f + static_cast<float>(random() % 1024) / 1024.0f, -4 - static_cast<int>(random() % 8));
  return float_to_f16(positive || random() % 2 ? magnitude : -magnitude);
}

void put_half(std::vector<std::byte>& data, size_t at, uint16_t bits) {
  std::memcpy(data.data() + at, &bits, 2);
}

void put_side(std::vector<std::byte>& data, DType type, size_t index, float value) {
  if (type == DType::kF32) {
    std::memcpy(data.data() + 4 * index, &value, 4);
  } else {
    put_half(data, 2 * index, type == DType::kF16 ? float_to_f16(value) : float_to_bf16(value));
  }
}

// Where d and dmin lie in a block; -1: none.
void scale_positions(Scheme scheme, int& d, int& dmin) {
  d = 0;
  dmin = -1;
  switch (scheme) {
    case Scheme::kQ4_1:
    case Scheme::kQ5_1:
    case Scheme::kQ4_K:
    case Scheme::kQ5_K:
      dmin = 2;
      break;
    case Scheme::kQ2_K:
      d = 80;
      dmin = 82;
      break;
    case Scheme::kQ3_K:
      d = 108;
      break;
    case Scheme::kQ6_K:
      d = 208;
      break;
    default:
      break;
  }
}

void fill_floats(StoredMatrix& out, DType type, int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 0.05f);
  out.data.resize(static_cast<size_t>(count) * size_of(type));
  for (int64_t i = 0; i < count; ++i) put_side(out.data, type, static_cast<size_t>(i), normal(random));
}

void fill_bytes(std::vector<std::byte>& data, std::mt19937& random, bool extreme) {
  const int choice = static_cast<int>(random() % 3);
  for (auto& byte : data) {
    const uint32_t bits = random();
    byte = static_cast<std::byte>(!extreme ? bits & 255 : choice == 0 ? 255 : choice == 1 ? 0 : (bits & 1) * 255);
  }
}

}  // namespace

int step_of(const HostMatrix& matrix) {
  return format_of(matrix.scheme).step;
}

bool has_offsets(Scheme scheme) {
  switch (scheme) {
    case Scheme::kQ4_1:
    case Scheme::kQ5_1:
    case Scheme::kQ2_K:
    case Scheme::kQ4_K:
    case Scheme::kQ5_K:
    case Scheme::kMlxAffine:
      return true;
    default:
      return false;
  }
}

std::vector<Weight> weights_of_row(const HostMatrix& m, int64_t row) {
  std::vector<Weight> out(static_cast<size_t>(m.cols));
  const int64_t stored = stored_index(m, row);
  const Format format = format_of(m.scheme);
  for (int64_t k = 0; k < m.cols; ++k) {
    Weight& w = out[static_cast<size_t>(k)];
    if (m.scheme == Scheme::kMlxAffine) {
      const int64_t side = stored * (m.cols / m.group) + k / m.group;
      w = {side_value(m.side_type, m.scales.data(), side), mlx_integer(m, stored, k),
           side_value(m.side_type, m.biases.data(), side)};
    } else {
      const auto* data = reinterpret_cast<const uint8_t*>(m.data.data());
      w = format.weight({data + (stored * (m.cols / format.block) + k / format.block) * format.bytes},
                        static_cast<int>(k % format.block));
    }
  }
  return out;
}

std::vector<float> floats_of_row(const HostMatrix& m, int64_t row) {
  std::vector<float> out(static_cast<size_t>(m.cols));
  if (is_float(m.scheme)) {
    const int64_t stored = stored_index(m, row);
    for (int64_t k = 0; k < m.cols; ++k)
      out[static_cast<size_t>(k)] = side_value(static_cast<DType>(m.scheme), m.data.data(),
                                               m.transposed ? k * m.stored_rows + stored : stored * m.cols + k);
    return out;
  }
  const std::vector<Weight> weights = weights_of_row(m, row);
  for (size_t k = 0; k < weights.size(); ++k) {
    const Weight& w = weights[k];
    out[k] = has_offsets(m.scheme) ? std::fma(w.scale, static_cast<float>(w.integer), w.offset)
                                   : w.scale * static_cast<float>(w.integer);
  }
  return out;
}

std::vector<float> product(const HostMatrix& m, Compute compute, const std::vector<float>& values, int64_t rows,
                           const float* bias) {
  std::vector<float> out(static_cast<size_t>(rows * m.rows));
  const bool integers = !is_float(m.scheme) && compute != Compute::kF32;
  for (int64_t n = 0; n < m.rows; ++n) {
    const std::vector<Weight> weights = integers ? weights_of_row(m, n) : std::vector<Weight>();
    const std::vector<float> floats = integers ? std::vector<float>() : floats_of_row(m, n);
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<float> x(values.begin() + r * m.cols, values.begin() + (r + 1) * m.cols);
      float sum;
      if (integers) {
        sum = canonical(weights, round_row(x.data(), m.cols, compute == Compute::kI8 ? 127 : 32639), step_of(m),
                        has_offsets(m.scheme));
      } else {
        if (is_float(m.scheme) && compute == Compute::kI8)
          for (float& value : x) value = bf16_to_float(float_to_bf16(value));
        sum = fused_in_order(floats, x.data());
      }
      out[static_cast<size_t>(r * m.rows + n)] = bias ? sum + bias[n] : sum;
    }
  }
  return out;
}

std::vector<MatrixKind> all_kinds() {
  std::vector<MatrixKind> kinds;
  for (int s = 0; s <= static_cast<int>(Scheme::kQ6_K); ++s) kinds.push_back({static_cast<Scheme>(s)});
  const DType sides[] = {DType::kBF16, DType::kF16, DType::kF32};
  const int groups[] = {64, 32, 128};
  int next = 0;
  for (int bits : {2, 3, 4, 5, 6, 8})
    for (int group : groups) kinds.push_back({Scheme::kMlxAffine, bits, group, sides[next++ % 4 % 3]});
  return kinds;
}

std::string name_of(const MatrixKind& kind) {
  if (kind.scheme != Scheme::kMlxAffine) return to_string(kind.scheme);
  return "MLX " + std::to_string(kind.bits) + " bits, group " + std::to_string(kind.group) + ", " +
         to_string(kind.side);
}

StoredMatrix random_matrix(const MatrixKind& kind, int64_t rows, int64_t cols, uint32_t seed, bool extreme) {
  std::mt19937 random(seed);
  StoredMatrix out;
  HostMatrix& m = out.view;
  m.name = "test." + name_of(kind);
  m.scheme = kind.scheme;
  m.rows = m.stored_rows = rows;
  m.cols = cols;
  if (is_float(kind.scheme)) {
    fill_floats(out, static_cast<DType>(kind.scheme), rows * cols, random);
  } else if (kind.scheme == Scheme::kMlxAffine) {
    m.bits = kind.bits;
    m.group = kind.group;
    m.side_type = kind.side;
    out.data.resize(static_cast<size_t>(rows * cols * kind.bits / 8));
    fill_bytes(out.data, random, extreme);
    const auto side = static_cast<size_t>(rows * cols / kind.group);
    out.scales.resize(side * size_of(kind.side));
    out.biases.resize(side * size_of(kind.side));
    std::normal_distribution<float> normal(0, 0.02f);
    for (size_t i = 0; i < side; ++i) {
      put_side(out.scales, kind.side, i, normal(random));
      put_side(out.biases, kind.side, i, normal(random));
    }
  } else {
    const Format format = format_of(kind.scheme);
    const auto blocks = static_cast<size_t>(rows * cols / format.block);
    out.data.resize(blocks * static_cast<size_t>(format.bytes));
    fill_bytes(out.data, random, extreme);
    int d, dmin;
    scale_positions(kind.scheme, d, dmin);
    for (size_t b = 0; b < blocks; ++b) {
      put_half(out.data, b * static_cast<size_t>(format.bytes) + static_cast<size_t>(d), random_half(random, false));
      if (dmin >= 0)
        put_half(out.data, b * static_cast<size_t>(format.bytes) + static_cast<size_t>(dmin),
                 random_half(random, false));
    }
  }
  m.data = out.data;
  m.scales = out.scales;
  m.biases = out.biases;
  return out;
}

}  // namespace vedette::ops::reference
