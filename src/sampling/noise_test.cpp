#include "sampling/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

// Known answers of the Random123 distribution, philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Noise, EveryPartOfTheKeyMatters) {
  std::set<PhiloxBlock> blocks;
  const auto add = [&](uint64_t seed, uint32_t choice, int64_t position, uint32_t block) {
    blocks.insert(noise_block({seed, choice, Purpose::kToken}, position, block));
  };
  add(1, 0, 0, 0);
  add(2, 0, 0, 0);
  add(uint64_t{1} << 32 | 1, 0, 0, 0);
  add(1, 1, 0, 0);
  add(1, 0, 1, 0);
  add(1, 0, 0, 1);
  blocks.insert(noise_block({1, 0, Purpose::kXtc}, 0, 0));
  EXPECT_EQ(blocks.size(), 7u);
  EXPECT_EQ(noise_block({7, 1, Purpose::kToken}, 9, 3), noise_block({7, 1, Purpose::kToken}, 9, 3));
}

TEST(PortableLog, AgreesWithTheLibraryWithinTwoUlps) {
  double x = 0x1p-33;
  for (int i = 0; i < 200000; ++i, x *= 1.00025) {
    const double expected = std::log(x);
    ASSERT_NEAR(portable_log(x), expected, 4.5e-16 * std::abs(expected) + 1e-320) << x;
  }
  EXPECT_EQ(portable_log(1.0), 0.0);
}

// Recorded bits: a change of the arithmetic would change every seeded text.
TEST(PortableLog, BitsAreFixed) {
  EXPECT_EQ(std::bit_cast<uint64_t>(portable_log(2.0)), std::bit_cast<uint64_t>(0x1.62e42fefa39efp-1));
  EXPECT_EQ(std::bit_cast<uint64_t>(portable_log(0.5)), std::bit_cast<uint64_t>(-0x1.62e42fefa39efp-1));
  EXPECT_EQ(std::bit_cast<uint64_t>(portable_log(10.0)), std::bit_cast<uint64_t>(0x1.26bb1bbb55516p+1));
}

TEST(PortableExp, AgreesWithTheLibrary) {
  for (float x = 0; x > -80; x -= 0.0137f)
    ASSERT_NEAR(portable_exp(x) / std::exp(static_cast<double>(x)), 1.0, 3e-7) << x;
  EXPECT_EQ(portable_exp(0), 1.0f);
  EXPECT_EQ(portable_exp(-1000), 0.0f);
  EXPECT_EQ(portable_exp(kMinusInfinity), 0.0f);
}

TEST(Gumbel, BoundHoldsEverywhere) {
  for (const uint32_t word : {0u, 1u, ~0u, ~0u - 1, ~0u - 2, 0x7fffffffu, 0x80000000u, 0xfffffff0u, 0xffff0000u}) {
    EXPECT_LT(gumbel(word), gumbel_bound(word)) << word;
    EXPECT_LE(gumbel_bound(word), kGumbelMax) << word;
    EXPECT_TRUE(std::isfinite(gumbel(word))) << word;
  }
  for (uint32_t i = 0; i < 20000; ++i) {
    const PhiloxBlock words = noise_block({i, 0, Purpose::kToken}, 0, 0);
    for (const uint32_t word : words) ASSERT_LT(gumbel(word), gumbel_bound(word)) << word;
  }
}

}  // namespace
}  // namespace vedette::sampling
