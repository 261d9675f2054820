// Every kernel variant, scheme, arithmetic and row count against the canonical sum, bit for bit.
#include "ops/cpu/matmul.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/property_test.h"
#if defined(__x86_64__)
#include "ops/cpu/matmul_amx_emulated.h"
#endif
#include "ops/cpu/matmul_kernels.h"
#include "ops/cpu/matmul_reference.h"
#include "ops/cpu/pack.h"
#include "ops/cpu/pool.h"
#include "ops/cpu/weight_memory.h"

namespace vedette::ops::cpu {
namespace {

using reference::MatrixKind;
using reference::StoredMatrix;
using test::between;
using test::bits;
using test::check_property;
using test::require;

constexpr Compute kComputes[] = {Compute::kI8, Compute::kI16, Compute::kF32};
constexpr float kUntouched = 12345.0f;

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = normal(random) * (random() % 64 == 0 ? 20.0f : 1.0f);
  return out;
}

// Aligned bytes.
struct Prepared {
  std::vector<std::byte> storage;
  std::byte* data = nullptr;
  explicit Prepared(size_t bytes) : storage(bytes + 64) {
    data = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
  }
};

Prepared prepare(const MatmulKernels& kernels, Compute compute, const std::vector<float>& values, int64_t rows,
                 int64_t cols) {
  const size_t stride = prepared_row_bytes(compute, cols);
  Prepared out(stride * static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r)
    kernels.prepare(compute, values.data() + r * cols, cols, out.data + static_cast<size_t>(r) * stride);
  return out;
}

// The product of all rows, in runs of `row_step` rows and `tile_step` tiles.
std::vector<float> run(const MatmulKernels& kernels, Compute compute, const PackedMatrix& matrix,
                       const std::vector<float>& values, int64_t rows, const float* bias, int64_t row_step,
                       int64_t tile_step) {
  const int64_t cols = packed_cols(matrix), n = packed_rows(matrix);
  const Prepared prepared = prepare(kernels, compute, values, rows, cols);
  const size_t stride = prepared_row_bytes(compute, cols);
  std::vector<float> rounded(values.size());
  for (int64_t r = 0; r < rows; ++r) kernels.round(values.data() + r * cols, cols, rounded.data() + r * cols);
  Prepared scratch(matmul_scratch_bytes(kernels, matrix));
  std::vector<float> out(static_cast<size_t>(rows * n + 16), kUntouched);
  for (int64_t r = 0; r < rows; r += row_step) {
    const MatmulInput input = {values.data() + r * cols, cols, prepared.data + static_cast<size_t>(r) * stride,
                               rounded.data() + r * cols, std::min(row_step, rows - r)};
    for (int64_t t = 0; t < packed_tiles(matrix); t += tile_step)
      matmul_with(kernels, compute, matrix, input, t, std::min(t + tile_step, packed_tiles(matrix)), bias,
                  {out.data() + r * n, n}, scratch.data);
  }
  for (size_t i = static_cast<size_t>(rows * n); i < out.size(); ++i)
    EXPECT_EQ(out[i], kUntouched) << "written behind the last row";
  out.resize(static_cast<size_t>(rows * n));
  return out;
}

// Bit for bit, but that any not-a-number equals any other.
::testing::AssertionResult same_bits(const std::vector<float>& want, const std::vector<float>& have) {
  if (want.size() != have.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(have[i])) continue;
    if (std::bit_cast<uint32_t>(want[i]) != std::bit_cast<uint32_t>(have[i]))
      return ::testing::AssertionFailure() << "element " << i << ": expected " << want[i] << ", found " << have[i];
  }
  return ::testing::AssertionSuccess();
}

PackedMatrixPtr pack(const HostMatrix& matrix, bool repack) {
  auto packed = pack_matrix(matrix, repack);
  if (!packed.ok()) {
    ADD_FAILURE() << packed.error().message;
    return nullptr;
  }
  return std::move(packed).value();
}

int64_t cols_of(const MatrixKind& kind) {
  if (is_float(kind.scheme)) return 77;
  return kind.scheme >= Scheme::kQ2_K && kind.scheme <= Scheme::kQ6_K ? 512 : 384;
}

TEST(Matmul, ListsTheVariantsThatRun) {
  for (KernelVariant variant : {KernelVariant::kPortable, KernelVariant::kAvx2, KernelVariant::kAvx512,
                                KernelVariant::kAvx512Vnni, KernelVariant::kAmx, KernelVariant::kNeon}) {
    const auto available = available_variants();
    const bool runs = std::find(available.begin(), available.end(), variant) != available.end();
    std::printf("kernels %-12s %s\n", to_string(variant), runs ? "tested" : "NOT tested: this processor lacks it");
  }
  EXPECT_EQ(available_variants().front(), KernelVariant::kPortable);
}

struct Tested {
  std::string name;
  MatmulKernels kernels;
};
void PrintTo(const Tested& tested, std::ostream* out) {
  *out << tested.name;
}

// The machine's variants, and the wide kernels of AMX on tiles in plain C++ where the rest of them runs. Wide kernels
// take as few rows as they can, however many it takes until they are faster.
std::vector<Tested> tested_kernels() {
  std::vector<Tested> out;
  for (KernelVariant variant : available_variants()) {
    std::string name = to_string(variant);
    std::erase(name, '+');
    out.push_back({name, kernels_of(variant)});
#if defined(__x86_64__)
    if (variant == KernelVariant::kAvx512Vnni)
      out.push_back({"amxemulated", with_wide(kernels_of(variant), emulated_wide_kernels())});
#endif
  }
  for (Tested& tested : out)
    for (auto& kind : tested.kernels.set)
      for (KernelSet& set : kind) set.wide.least_rows = kWideBlock;
  return out;
}

class EveryVariant : public ::testing::TestWithParam<Tested> {
 protected:
  const MatmulKernels& kernels() const { return GetParam().kernels; }
};

// Outputs and columns that are no multiple of a tile where the scheme lets them.
TEST_P(EveryVariant, EqualsTheCanonicalSumAtAnyRowCount) {
  for (const MatrixKind& kind : reference::all_kinds()) {
    check_property(reference::name_of(kind), 1, [&] {
      const int64_t n = *between<int64_t>(55, 75, 1).as("outputs"), rows = *between<int64_t>(17, 35, 1).as("rows");
      const bool super_blocks = kind.scheme >= Scheme::kQ2_K && kind.scheme <= Scheme::kQ6_K;
      const int64_t block = is_float(kind.scheme)               ? 1
                            : kind.scheme == Scheme::kMlxAffine ? kind.group
                            : super_blocks                      ? 256
                                                                : 32;
      const int64_t cols = block == 1 ? *between<int64_t>(50, 90, 1).as("columns")
                                      : block * *between<int64_t>(1, 512 / block).as("blocks of columns");
      const auto seed = static_cast<uint32_t>(*bits().as("values") & 0xffff);
      const StoredMatrix stored = reference::random_matrix(kind, n, cols, seed, *between(0, 3).as("3: extreme") == 3);
      const std::vector<float> values = random_values(rows * cols, seed + 1), bias = random_values(n, seed + 2);
      const PackedMatrixPtr packed = pack(stored.view, true);
      RC_ASSERT(packed != nullptr);
      for (Compute compute : kComputes) {
        const std::vector<float> want = reference::product(stored.view, compute, values, rows, bias.data());
        const auto check = [&](int64_t row_step, int64_t tile_step) {
          require(same_bits(want, run(kernels(), compute, *packed, values, rows, bias.data(), row_step, tile_step)),
                  std::string(to_string(compute)) + ", " + std::to_string(row_step) + " rows and " +
                      std::to_string(tile_step) + " tiles at a time");
        };
        for (int64_t row_step = 1; row_step <= 19; ++row_step) check(row_step, 5);
        check(rows, 5);
        const int64_t row_step = *between<int64_t>(1, 8).as("rows of narrow runs");
        for (int64_t tile_step : {1, 2}) check(row_step, tile_step);
      }
    });
  }
}

TEST_P(EveryVariant, InPlaceEqualsRepacked) {
  for (const MatrixKind& kind : reference::all_kinds()) {
    const int64_t n = 35, cols = cols_of(kind), rows = 19;
    const StoredMatrix stored = reference::random_matrix(kind, n, cols, 12);
    const std::vector<float> values = random_values(rows * cols, 7);
    const PackedMatrixPtr repacked = pack(stored.view, true), in_place = pack(stored.view, false);
    ASSERT_TRUE(repacked && in_place);
    EXPECT_EQ(packed_owned_bytes(*in_place), 0);
    EXPECT_EQ(packed_mapped_bytes(*repacked), 0);
    for (Compute compute : kComputes) {
      SCOPED_TRACE(reference::name_of(kind) + " " + to_string(compute));
      const auto want = reference::product(stored.view, compute, values, rows, nullptr);
      EXPECT_TRUE(same_bits(want, run(kernels(), compute, *in_place, values, rows, nullptr, 3, 2)));
      EXPECT_TRUE(same_bits(want, run(kernels(), compute, *in_place, values, rows, nullptr, rows, 3)));
      EXPECT_TRUE(same_bits(want, run(kernels(), compute, *repacked, values, rows, nullptr, 1, 3)));
    }
  }
}

// Integers, sub-scales and activations at their limits, so that any overflow shows.
TEST_P(EveryVariant, ExtremeValues) {
  for (const MatrixKind& kind : reference::all_kinds()) {
    for (uint32_t seed = 0; seed < 6; ++seed) {
      const int64_t n = 16, cols = is_float(kind.scheme) ? 64 : 512, rows = 16;
      const StoredMatrix stored = reference::random_matrix(kind, n, cols, seed, true);
      std::vector<float> values(static_cast<size_t>(rows * cols));
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t row = static_cast<int64_t>(i) / cols % 4;
        const float low_digit = static_cast<float>(row == 3 && i % 32 != 0 ? 32639 - 127 - 128 : 32639);  // digit -128
        values[i] = row == 0 ? low_digit : row == 1 ? -low_digit : i % 2 ? low_digit : -low_digit;
      }
      const PackedMatrixPtr packed = pack(stored.view, true);
      ASSERT_TRUE(packed);
      for (Compute compute : kComputes) {
        SCOPED_TRACE(reference::name_of(kind) + " " + to_string(compute) + " seed " + std::to_string(seed));
        const auto want = reference::product(stored.view, compute, values, rows, nullptr);
        for (int64_t row_step : {1, 2, 4, 16})
          EXPECT_TRUE(same_bits(want, run(kernels(), compute, *packed, values, rows, nullptr, row_step, 1)));
      }
    }
  }
}

// A row of not-a-numbers or infinities spoils itself alone; tiny and zero groups are zeros.
TEST_P(EveryVariant, OddActivations) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const MatrixKind& kind :
       {MatrixKind{Scheme::kQ4_1}, MatrixKind{Scheme::kQ8_0}, MatrixKind{Scheme::kQ6_K}, MatrixKind{Scheme::kBF16}}) {
    const int64_t n = 20, cols = 256, rows = 8;
    const StoredMatrix stored = reference::random_matrix(kind, n, cols, 3);
    std::vector<float> values = random_values(rows * cols, 8);
    const auto at = [&](int64_t row, int64_t k) -> float& { return values[static_cast<size_t>(row * cols + k)]; };
    at(1, 40) = std::numeric_limits<float>::quiet_NaN();
    at(3, 0) = infinity;
    at(4, 255) = -infinity;
    for (int64_t k = 0; k < cols; ++k) at(5, k) = 0;
    for (int64_t k = 32; k < 64; ++k) at(6, k) = 1e-38f;
    for (int64_t k = 64; k < 96; ++k) at(7, k) = 3e38f;
    const PackedMatrixPtr packed = pack(stored.view, true);
    ASSERT_TRUE(packed);
    for (Compute compute : kComputes) {
      SCOPED_TRACE(reference::name_of(kind) + " " + to_string(compute));
      const auto want = reference::product(stored.view, compute, values, rows, nullptr);
      const auto have = run(kernels(), compute, *packed, values, rows, nullptr, 8, 2);
      EXPECT_TRUE(same_bits(want, have));
      for (int64_t row : {1, 3, 4})
        for (int64_t i = 0; i < n; ++i) EXPECT_FALSE(std::isfinite(have[static_cast<size_t>(row * n + i)])) << row;
      for (int64_t row : {0, 2, 5, 6})
        for (int64_t i = 0; i < n; ++i) EXPECT_TRUE(std::isfinite(have[static_cast<size_t>(row * n + i)])) << row;
    }
  }
}

decltype(MatmulKernels::prepare) prepare_digits_of_machine() {
#if defined(__x86_64__)
  return prepare_digits_avx2;
#elif defined(__aarch64__)
  return prepare_digits_neon;
#else
  return nullptr;
#endif
}

// A record of int16 values from one form into the other; see kRecord16.
void words_to_digits(std::byte* record) {
  constexpr int kOrder[4] = {0, 2, 1, 3};
  int16_t words[32];
  int8_t digits[64];
  std::memcpy(words, record, sizeof words);
  for (int i = 0; i < 32; ++i) {
    const int x = words[i / 4 * 4 + kOrder[i % 4]];
    digits[i] = static_cast<int8_t>(x & 255);
    digits[32 + i] = static_cast<int8_t>((x - digits[i]) / 256);
  }
  std::memcpy(record, digits, sizeof digits);
}

TEST_P(EveryVariant, PreparesTheSameBytes) {
  for (Compute compute : {Compute::kI8, Compute::kI16}) {
    for (int64_t cols : {1, 31, 32, 77, 576}) {
      std::vector<float> values = random_values(4 * cols, 9);
      values[0] = std::numeric_limits<float>::quiet_NaN();
      for (int64_t k = 0; k < cols; ++k) values[static_cast<size_t>(cols + k)] = 127.0f * (k % 2 ? 0.5f : 1.5f);
      const size_t bytes = 4 * prepared_row_bytes(compute, cols);
      Prepared want = prepare(kernels_of(KernelVariant::kPortable), compute, values, 4, cols);
      const Prepared have = prepare(kernels(), compute, values, 4, cols);
      if (compute == Compute::kI16 && kernels().prepare == prepare_digits_of_machine())
        for (size_t row = 0; row < 4; ++row)
          for (size_t g = 0; g < prepared_groups(cols); ++g)
            words_to_digits(want.data + row * bytes / 4 + g * kRecord16);
      EXPECT_EQ(std::memcmp(want.data, have.data, bytes), 0) << to_string(compute) << " " << cols;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryVariant, ::testing::ValuesIn(tested_kernels()),
                         [](const auto& info) { return info.param.name; });

TEST(PackMatrix, GatherEqualsDequantize) {
  for (const MatrixKind& kind : reference::all_kinds()) {
    SCOPED_TRACE(reference::name_of(kind));
    const int64_t n = 19, cols = cols_of(kind);
    const StoredMatrix stored = reference::random_matrix(kind, n, cols, 21);
    const PackedMatrixPtr repacked = pack(stored.view, true), in_place = pack(stored.view, false);
    ASSERT_TRUE(repacked && in_place);
    for (int64_t row : {0, 7, 16, 18}) {
      std::vector<float> dequantized(static_cast<size_t>(cols)), gathered(dequantized), mapped(dequantized);
      dequantize_row(stored.view, row, dequantized);
      gather_row(*repacked, row, gathered.data());
      gather_row(*in_place, row, mapped.data());
      EXPECT_TRUE(same_bits(reference::floats_of_row(stored.view, row), dequantized));
      EXPECT_TRUE(same_bits(dequantized, gathered));
      EXPECT_TRUE(same_bits(dequantized, mapped));
    }
  }
}

TEST(PackMatrix, RowMapAndTransposition) {
  const MatmulKernels& kernels = kernels_of(available_variants().back());
  const int64_t cols = 64, rows = 2;
  const std::vector<float> values = random_values(rows * cols, 31);
  for (const MatrixKind& kind :
       {MatrixKind{Scheme::kQ4_0}, MatrixKind{Scheme::kF16}, MatrixKind{Scheme::kMlxAffine, 3, 32}}) {
    StoredMatrix stored = reference::random_matrix(kind, 40, cols, 32);
    stored.view.rows = 21;
    for (uint32_t i = 0; i < 21; ++i) stored.view.row_map.push_back(i * 17 % 40);
    for (bool transposed : {false, true}) {
      if (transposed && !is_float(kind.scheme)) continue;
      stored.view.transposed = transposed;
      const PackedMatrixPtr packed = pack(stored.view, false);
      ASSERT_TRUE(packed);
      EXPECT_GT(packed_owned_bytes(*packed), 0);
      const auto want = reference::product(stored.view, Compute::kF32, values, rows, nullptr);
      EXPECT_TRUE(same_bits(want, run(kernels, Compute::kF32, *packed, values, rows, nullptr, 2, 1)));
    }
  }
}

// Many chunks of work, some of which end within a tile.
TEST(PackMatrix, PacksTheSameBytesOnAPool) {
  Pool pool(4);
  WeightMemory memory;
  for (const MatrixKind& kind : reference::all_kinds()) {
    const StoredMatrix stored = reference::random_matrix(kind, 3001, 1024, 43);
    const auto alone = pack_matrix(stored.view, true);
    const auto pooled = pack_matrix(stored.view, true, {&pool, &memory});
    ASSERT_TRUE(alone.ok() && pooled.ok()) << reference::name_of(kind);
    ASSERT_EQ(packed_owned_bytes(**alone), packed_owned_bytes(**pooled));
    const auto bytes = static_cast<size_t>(packed_owned_bytes(**alone));
    EXPECT_EQ(std::memcmp((*alone)->planes, (*pooled)->planes, bytes), 0) << reference::name_of(kind);
  }
}

TEST(PackMatrix, ADamagedScaleIsNamedByTheFirstRowOnAPoolToo) {
  Pool pool(4);
  WeightMemory memory;
  StoredMatrix stored = reference::random_matrix({Scheme::kQ8_0}, 3001, 1024, 44);
  const size_t row = stored.data.size() / 3001;
  for (const size_t damaged : {1234, 2500}) {
    stored.data[damaged * row + 34] = std::byte{0};
    stored.data[damaged * row + 35] = std::byte{0x7c};
  }
  stored.view.data = stored.data;
  const auto packed = pack_matrix(stored.view, true, {&pool, &memory});
  ASSERT_FALSE(packed.ok());
  EXPECT_NE(packed.error().message.find("row 1234 "), std::string::npos) << packed.error().message;
}

TEST(PackMatrix, OwnedBytesStayNearTheStoredBytes) {
  for (const MatrixKind& kind : reference::all_kinds()) {
    const StoredMatrix stored = reference::random_matrix(kind, 64, 1024, 41);
    const PackedMatrixPtr packed = pack(stored.view, true);
    ASSERT_TRUE(packed);
    const auto bytes = static_cast<double>(stored.data.size() + stored.scales.size() + stored.biases.size());
    EXPECT_LE(static_cast<double>(packed_owned_bytes(*packed)), 1.04 * bytes) << reference::name_of(kind);
  }
}

// Expects an error of `kind` whose message names the tensor and contains `text`.
void expect_error(const HostMatrix& matrix, ErrorKind kind, const std::string& text) {
  for (bool repack : {true, false}) {
    const auto packed = pack_matrix(matrix, repack);
    ASSERT_FALSE(packed.ok()) << text;
    EXPECT_EQ(packed.error().kind, kind) << packed.error().message;
    EXPECT_NE(packed.error().message.find(matrix.name), std::string::npos) << packed.error().message;
    EXPECT_NE(packed.error().message.find(text), std::string::npos) << packed.error().message;
  }
}

TEST(PackMatrix, RefusesWhatContradictsItself) {
  const StoredMatrix q4 = reference::random_matrix({Scheme::kQ4_0}, 4, 64, 51);
  HostMatrix m = q4.view;
  m.data = m.data.first(m.data.size() - 1);
  expect_error(m, ErrorKind::kCorruptFile, "need 144 bytes, found 143");
  m = q4.view;
  m.cols = 48;
  expect_error(m, ErrorKind::kUnsupported, "48 columns");
  m = q4.view;
  m.rows = 5;
  expect_error(m, ErrorKind::kCorruptFile, "5 rows expected, 4 stored");
  m = q4.view;
  m.rows = m.stored_rows = int64_t{1} << 62;
  expect_error(m, ErrorKind::kCorruptFile, "larger than any file");
  m = q4.view;
  m.rows = m.stored_rows = 0;
  expect_error(m, ErrorKind::kCorruptFile, "no elements");
  m = q4.view;
  m.row_map = {0, 1, 2, 4};
  expect_error(m, ErrorKind::kCorruptFile, "row 4 of 4");
  m = q4.view;
  m.transposed = true;
  expect_error(m, ErrorKind::kUnsupported, "transposed");
  const StoredMatrix mlx = reference::random_matrix({Scheme::kMlxAffine, 4, 64}, 4, 128, 52);
  m = mlx.view;
  m.bits = 7;
  expect_error(m, ErrorKind::kUnsupported, "7 bits");
  m = mlx.view;
  m.group = 16;
  expect_error(m, ErrorKind::kUnsupported, "group of 16");
  m = mlx.view;
  m.biases = m.biases.first(2);
  expect_error(m, ErrorKind::kCorruptFile, "biases");
}

TEST(PackMatrix, RefusesScalesThatAreNoNumbers) {
  const uint16_t not_a_number = 0x7e00, infinite = 0xfc00;
  for (Scheme scheme : {Scheme::kQ4_0, Scheme::kQ4_1, Scheme::kQ4_K}) {
    StoredMatrix stored = reference::random_matrix({scheme}, 4, 256, 53);
    std::memcpy(stored.data.data() + stored.data.size() / 4 * 3, &not_a_number, 2);  // d of row 3
    expect_error(stored.view, ErrorKind::kCorruptFile, "row 3");
  }
  StoredMatrix stored = reference::random_matrix({Scheme::kQ5_K}, 4, 256, 54);
  std::memcpy(stored.data.data() + 176 * 2 + 2, &infinite, 2);  // dmin of row 2
  expect_error(stored.view, ErrorKind::kCorruptFile, "row 2");
  StoredMatrix mlx = reference::random_matrix({Scheme::kMlxAffine, 4, 64, DType::kF16}, 4, 128, 55);
  std::memcpy(mlx.biases.data() + 2 * 2 + 2, &infinite, 2);
  expect_error(mlx.view, ErrorKind::kCorruptFile, "row 1");
}

}  // namespace
}  // namespace vedette::ops::cpu
