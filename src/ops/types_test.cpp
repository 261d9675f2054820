#include "ops/types.h"

#include <gtest/gtest.h>

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
