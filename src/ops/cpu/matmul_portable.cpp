// The kernels in plain C++, for any machine: the same sums as the others, bit for bit.
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/float16.h"
#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

// 16 lanes in the compiler's own vectors, which it cuts into whatever the machine has.
using Floats = float __attribute__((vector_size(64)));
using Words = uint32_t __attribute__((vector_size(64)));
using Integers = int32_t __attribute__((vector_size(64)));

template <class T>
T load_as(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// Kept out of line, or a kernel of a few lines becomes tens of kilobytes.
#define VEDETTE_OUTLINE [[gnu::noinline]]

// The correctly rounded std::fma, not whatever the compiler might contract.
VEDETTE_OUTLINE Floats fused(const Floats& a, const Floats& b, const Floats& c) {
  Floats out;
  for (int i = 0; i < kTileRows; ++i) out[i] = std::fma(a[i], b[i], c[i]);
  return out;
}

VEDETTE_OUTLINE void fuse_product(Floats& acc, const Floats& weight, float a) {
  for (int i = 0; i < kTileRows; ++i) acc[i] = std::fma(weight[i], a, acc[i]);
}

VEDETTE_OUTLINE Floats load_halves(const std::byte* data) {
  Floats out;
  for (int i = 0; i < kTileRows; ++i) out[i] = f16_to_float(load_as<uint16_t>(data + 2 * i));
  return out;
}

VEDETTE_OUTLINE Floats load_bfloats(const std::byte* data) {
  Floats out;
  for (int i = 0; i < kTileRows; ++i) out[i] = bf16_to_float(load_as<uint16_t>(data + 2 * i));
  return out;
}

// Unsigned bytes of q times the signed bytes of a, four of each per lane.
VEDETTE_OUTLINE void dot_bytes(Words& sum, const Words& q, uint32_t a) {
  for (int b = 0; b < 32; b += 8) sum += ((q >> b) & 0xff) * static_cast<uint32_t>(static_cast<int8_t>(a >> b));
}

VEDETTE_OUTLINE void dot_halves(Words& sum, const Words& q, uint32_t a) {
  const auto low = static_cast<uint32_t>(static_cast<int16_t>(a)),
             high = static_cast<uint32_t>(static_cast<int16_t>(a >> 16));
  sum += (q & 0xffff) * low + (q >> 16) * high;
}

struct Portable {
  static constexpr int kLanes = kTileRows;
  static constexpr int kMaxRows = 2;
  using F = Floats;
  using I = Words;

  static F zero() { return F{}; }
  static I zero_word() { return I{}; }
  static F constant(float value) { return F{} + value; }
  static F broadcast(const std::byte* data) { return F{} + load_as<float>(data); }
  static I broadcast_word(const std::byte* data) { return I{} + load_as<uint32_t>(data); }
  static I bytes(uint32_t value) { return I{} + value * 0x01010101u; }
  static I words(uint32_t value) { return I{} + value * 0x00010001u; }
  static I dwords(uint32_t value) { return I{} + value; }

  static I load(const std::byte* data) { return load_as<I>(data); }
  static I load_u8(const std::byte* data) {
    I out;
    for (int i = 0; i < kLanes; ++i) out[i] = static_cast<uint32_t>(data[i]);
    return out;
  }
  static I load_s8(const std::byte* data) {
    return std::bit_cast<Words>(std::bit_cast<Integers>(load_u8(data) << 24) >> 24);
  }
  static F load_f32(const std::byte* data) { return load_as<F>(data); }
  static F load_f16(const std::byte* data) { return load_halves(data); }
  static F load_bf16(const std::byte* data) { return load_bfloats(data); }
  static void store(float* out, F x) { std::memcpy(out, &x, sizeof x); }

  static F mul(F a, F b) { return a * b; }
  static F fma(F a, F b, F c) { return fused(a, b, c); }
  static F fms(F a, F b, F c) { return fused(a, b, -c); }
  static F fnma(F a, F b, F c) { return fused(-a, b, c); }
  static void add_product(F& acc, const F& weight, const std::byte* a) { fuse_product(acc, weight, load_as<float>(a)); }
  static F to_float(I x) { return __builtin_convertvector(std::bit_cast<Integers>(x), F); }

  static I bit_and(I a, I b) { return a & b; }
  static I or_and(I a, I b, I mask) { return a | (b & mask); }
  // Shifts to the left, or to the right where negative.
  template <int n>
  static I shift32(I x) {
    if constexpr (n >= 0)
      return x << n;
    else
      return x >> -n;
  }
  template <int n>
  static I shift16(I x) {
    if constexpr (n == 0)
      return x;
    else if constexpr (n > 0)
      return (x << n) & words((0xffffu << n) & 0xffffu);
    else
      return (x >> -n) & words(0xffffu >> -n);
  }

  static constexpr bool kAddsBytes = true, kDigits = false;
  static void add_bytes(I& sum, const I& q, const std::byte* a) { dot_bytes(sum, q, load_as<uint32_t>(a)); }
  static void add_words(I& sum, const I& q, const std::byte* a) { dot_halves(sum, q, load_as<uint32_t>(a)); }
};

#include "ops/cpu/matmul_kernel-inl.h"

}  // namespace

constinit const MatmulKernels kPortableKernels = kernel_table<Portable>(prepare_row_portable, round_row_portable);

}  // namespace vedette::ops::cpu
