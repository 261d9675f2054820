#include "ops/types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>

#include "ops/cpu/cpu_backend.h"

namespace vedette::ops {
namespace {

TEST(Types, RowBytesFollowTheBlocks) {
  EXPECT_EQ(row_bytes(Scheme::kF32, 7), 28);
  EXPECT_EQ(row_bytes(Scheme::kBF16, 7), 14);
  EXPECT_EQ(row_bytes(Scheme::kQ4_1, 64), 40);
  EXPECT_EQ(row_bytes(Scheme::kQ6_K, 512), 420);
  EXPECT_EQ(row_bytes(Scheme::kQ8_0, 48), 0);
  EXPECT_EQ(row_bytes(Scheme::kQ4_K, 128), 0);
  EXPECT_EQ(row_bytes(Scheme::kMlxAffine, 128), 0);
}

// Reads the golden file front to back.
struct Golden {
  std::vector<char> data;
  size_t at = 0;
  Golden() {
    std::ifstream file(VEDETTE_SOURCE_DIR "/tests/golden/dequantize.bin", std::ios::binary);
    data.assign(std::istreambuf_iterator<char>(file), {});
  }
  const char* take(size_t bytes) {
    const char* out = data.data() + at;
    at += bytes;
    return out;
  }
  uint32_t number() {
    uint32_t value;
    std::memcpy(&value, take(4), 4);
    return value;
  }
};

TEST(Types, DequantizesAsTheGgufLibraryDoes) {
  Golden golden;
  ASSERT_GT(golden.data.size(), 30000u) << "tests/golden/dequantize.bin is missing";
  int schemes = 0;
  while (golden.at < golden.data.size()) {
    const uint32_t length = golden.number();
    const std::string name(golden.take(length), length);
    const uint32_t cols = golden.number(), bytes = golden.number();
    HostMatrix matrix;
    for (int s = 0; s <= static_cast<int>(Scheme::kQ6_K); ++s)
      if (name == to_string(static_cast<Scheme>(s))) matrix.scheme = static_cast<Scheme>(s);
    ASSERT_EQ(name, to_string(matrix.scheme));
    ASSERT_EQ(row_bytes(matrix.scheme, cols), bytes) << name;
    matrix.rows = matrix.stored_rows = 1;
    matrix.cols = cols;
    matrix.data = std::as_bytes(std::span(golden.take(bytes), bytes));
    std::vector<float> want(cols), have(cols);
    std::memcpy(want.data(), golden.take(cols * 4), cols * 4);
    dequantize_row(matrix, 0, have);
    for (uint32_t k = 0; k < cols; ++k)
      ASSERT_EQ(std::bit_cast<uint32_t>(want[k]), std::bit_cast<uint32_t>(have[k])) << name << " column " << k;
    ++schemes;
  }
  EXPECT_EQ(schemes, 13);
}

TEST(Isa, ChoosesAmongTheAvailable) {
  const auto available = cpu::available_isas();
  ASSERT_EQ(available.front(), cpu::Isa::kPortable);
  ASSERT_TRUE(cpu::choose_isa("").ok());
  EXPECT_EQ(*cpu::choose_isa(""), available.back());
  EXPECT_EQ(*cpu::choose_isa("portable"), cpu::Isa::kPortable);
  const auto unknown = cpu::choose_isa("neon9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("portable"), std::string::npos);
}

}  // namespace
}  // namespace vedette::ops
