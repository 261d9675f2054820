#include "sampling/loop_detector.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace vedette::sampling {
namespace {

bool ends_in_loop(const std::vector<int32_t>& ids, const LoopParams& params) {
  for (int64_t size = std::max<int64_t>(params.min_pattern_size, 1); size <= params.max_pattern_size; ++size) {
    if (size * params.min_count > static_cast<int64_t>(ids.size())) continue;
    bool loop = true;
    for (int64_t i = 0; i < size * (params.min_count - 1); ++i)
      loop =
          loop && ids[ids.size() - 1 - static_cast<size_t>(i)] == ids[ids.size() - 1 - static_cast<size_t>(i + size)];
    if (loop) return true;
  }
  return false;
}

TEST(LoopDetector, EqualsTheDefinitionAtEveryToken) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    LoopParams params{.max_pattern_size = 1 + static_cast<int64_t>(random() % 6),
                      .min_count = 2 + static_cast<int64_t>(random() % 3)};
    params.min_pattern_size = static_cast<int64_t>(random() % static_cast<uint32_t>(params.max_pattern_size + 1));
    ASSERT_TRUE(validate(params).ok());
    LoopDetector detector(params);
    std::vector<int32_t> ids;
    for (int i = 0; i < 200; ++i) {
      ids.push_back(static_cast<int32_t>(random() % 2));
      LoopDetector copy = detector;
      ASSERT_EQ(detector.push(ids.back()), ends_in_loop(ids, params)) << "round " << round << " token " << i;
      ASSERT_EQ(copy.push(ids.back()), ends_in_loop(ids, params));
    }
  }
}

TEST(LoopDetector, OffAndHuge) {
  LoopDetector off({});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(off.push(1));
  LoopDetector huge({.max_pattern_size = kMaxLoopPattern, .min_count = std::numeric_limits<int64_t>::max()});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(huge.push(1));
}

TEST(LoopDetector, ParametersAreChecked) {
  struct Case {
    LoopParams params;
    const char* field;
    const char* text;
  };
  const Case cases[] = {
      {{.max_pattern_size = -1}, "max_pattern_size", "max_pattern_size is -1, must be an integer from 0 to 4096"},
      {{.max_pattern_size = 5000, .min_count = 2},
       "max_pattern_size",
       "max_pattern_size is 5000, must be an integer from 0 to 4096"},
      {{.max_pattern_size = 3, .min_pattern_size = 4, .min_count = 2},
       "min_pattern_size",
       "min_pattern_size is 4, must be an integer from 0 to max_pattern_size (3)"},
      {{.max_pattern_size = 3, .min_count = 1}, "min_count", "min_count is 1, must be an integer of at least 2"},
      {{.min_count = -1}, "min_count", "min_count is -1, must be an integer of at least 0"},
  };
  for (const Case& one : cases) {
    const Status status = validate(one.params);
    ASSERT_FALSE(status.ok()) << one.text;
    EXPECT_EQ(status.error().field, one.field);
    EXPECT_EQ(status.error().message, one.text);
  }
  EXPECT_TRUE(validate(LoopParams{}).ok());
}

}  // namespace
}  // namespace vedette::sampling
