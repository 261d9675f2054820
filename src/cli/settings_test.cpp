#include "cli/settings.h"

#include <gtest/gtest.h>

#include <limits>

namespace vedette::cli {
namespace {

OptionValues with(std::vector<std::pair<std::string, std::string>> pairs) {
  OptionValues values;
  for (const auto& [name, value] : pairs) EXPECT_TRUE(values.set(name, value, "test").ok()) << name;
  return values;
}

TEST(Settings, Sizes) {
  EXPECT_EQ(parse_size("1000"), 1000);
  EXPECT_EQ(parse_size("8GB"), 8000000000);
  EXPECT_EQ(parse_size("1.5GiB"), 1610612736);
  EXPECT_EQ(parse_size("2 MiB"), 2097152);
  for (const char* wrong : {"", "GB", "-1", "1.2.3", "nan", "1e40", "8 parsecs"})
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
}

TEST(Settings, LogitBias) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(*parse_logit_bias("15043=-inf"), std::pair(15043, -infinity));
  EXPECT_EQ(*parse_logit_bias("7+1.5"), std::pair(7, 1.5f));
  EXPECT_EQ(*parse_logit_bias("7-1.5"), std::pair(7, -1.5f));
  EXPECT_EQ(*parse_logit_bias("7=+2"), std::pair(7, 2.0f));
  for (const char* wrong : {"", "=1", "7", "7=", "7=x", "-7=1", "99999999999=1", "7=nan", "7=1 "})
    EXPECT_FALSE(parse_logit_bias(wrong).ok()) << wrong;
}

TEST(Settings, KvTypesMustAgree) {
  EXPECT_EQ(*read_kv_type(with({})), std::nullopt);
  EXPECT_EQ(*read_kv_type(with({{"--kv-cache-mode", "f32"}})), ops::DType::kF32);
  EXPECT_EQ(*read_kv_type(with({{"--cache-type-k", "bf16"}, {"--cache-type-v", "bf16"}})), ops::DType::kBF16);
  EXPECT_EQ(*read_kv_type(with({{"--cache-type-k", "f32"}, {"--kv-cache-mode", "f32"}})), ops::DType::kF32);
  auto overridden = read_kv_type(with({{"--cache-type-v", "f16"}, {"--kv-cache-mode", "f32"}}));
  ASSERT_FALSE(overridden.ok());
  EXPECT_NE(overridden.error().message.find("--cache-type-k f32 with --cache-type-v f16"), std::string::npos);
  auto mixed = read_kv_type(with({{"--cache-type-k", "f32"}}));
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.error().message.find("--cache-type-k f32 with --cache-type-v f16"), std::string::npos);
}

TEST(Settings, ASeedIsDrawnOnceAndFitsJson) {
  EXPECT_EQ(read_sampling(with({{"--seed", "7"}}))->seed, 7u);
  auto first = read_sampling(with({}))->seed, second = read_sampling(with({{"--seed", "-1"}}))->seed;
  ASSERT_TRUE(first && second);
  EXPECT_LT(*first, 1ull << 53);
  EXPECT_NE(*first, *second);
}

TEST(Settings, ComputeOptionsReachTheLoader) {
  auto load = read_compute(with({{"--compute", "f32"},
                                 {"--threads", "2"},
                                 {"--isa", "portable"},
                                 {"--prefill-chunk-size", "7"},
                                 {"--repack", "off"}}));
  ASSERT_TRUE(load.ok());
  EXPECT_EQ(load->compute, engine::ComputeChoice::kF32);
  EXPECT_EQ(load->threads, 2);
  EXPECT_EQ(load->isa, "portable");
  EXPECT_EQ(load->prefill_chunk, 7);
  EXPECT_FALSE(load->repack);
}

// What the table lets through, the sampler takes, and the table takes no less.
TEST(Settings, RangesOfTheTableAreTheSamplers) {
  for (const char* name :
       {"--temperature", "--top-p", "--min-p", "--repetition-penalty", "--frequency-penalty", "--presence-penalty"}) {
    const OptionSpec* option = find_option(name);
    ASSERT_NE(option, nullptr);
    auto check = [&](double value) {
      sampling::SamplingParams params;
      const std::string_view key = name;
      (key == "--temperature"          ? params.temperature
       : key == "--top-p"              ? params.top_p
       : key == "--min-p"              ? params.min_p
       : key == "--repetition-penalty" ? params.repetition_penalty
       : key == "--frequency-penalty"  ? params.frequency_penalty
                                       : params.presence_penalty) = value;
      return sampling::validate(params).ok();
    };
    EXPECT_TRUE(check(option->min)) << name;
    EXPECT_TRUE(check(option->max)) << name;
    EXPECT_FALSE(check(option->min - 1e-3)) << name;
    EXPECT_FALSE(check(option->max + 1e-3)) << name;
  }
}

}  // namespace
}  // namespace vedette::cli
