// What the meter runs; that it takes time is all that can be said of the times.
#include "engine/speed.h"

#include <gtest/gtest.h>

#include "engine/read_bandwidth.h"
#include "engine/test_models.h"

namespace vedette::engine {
namespace {

std::unique_ptr<models::Decoder> small_decoder(int64_t sequences) {
  return test::load(test::random_model({ops::Scheme::kQ8_0}), {.max_rows = 32 + static_cast<int>(sequences),
                                                               .max_logit_rows = 16,
                                                               .context = 128,
                                                               .sequences = sequences,
                                                               .chunk = 32});
}

TEST(SpeedMeter, MeasuresPromptsDecodingAndRows) {
  const auto decoder = small_decoder(3);
  int64_t steps = 0;
  SpeedMeter meter(*decoder, 32, 1, [&]() -> Status {
    ++steps;
    return ok_status();
  });
  const auto prefill = meter.prefill(100);
  ASSERT_TRUE(prefill.ok()) << prefill.error().message;
  EXPECT_GT(*prefill, 0);
  EXPECT_EQ(steps, 4) << "100 tokens in chunks of 32";

  steps = 0;
  const auto alone = meter.decode(10, 0, 1);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_GT(*alone, 0);
  EXPECT_EQ(steps, 1 + 10) << "a prompt of one token, then one step per token";

  steps = 0;
  const auto together = meter.decode(10, 70, 3);
  ASSERT_TRUE(together.ok()) << together.error().message;
  EXPECT_GT(*together, 0);
  EXPECT_EQ(steps, 3 * 3 + 10) << "three prompts of three chunks each, then the sequences share their steps";

  steps = 0;
  const std::vector<int64_t> counts = {1, 4, 16};
  const auto rows = meter.rows(counts, 50, 2);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_EQ(steps, 2 + 3 * (1 + 2) * SpeedMeter::kStepsPerSample) << "two chunks, a warm-up and two rounds";
  ASSERT_EQ(rows->size(), 3u);
  for (const std::vector<double>& samples : *rows) {
    ASSERT_EQ(samples.size(), 2u);
    for (const double seconds : samples) EXPECT_GT(seconds, 0);
  }
}

TEST(SpeedMeter, TheContextItNamesIsEnoughAndNotTooMuch) {
  EXPECT_EQ(SpeedMeter::decode_context(10, 0), 12);
  EXPECT_EQ(SpeedMeter::decode_context(10, 1), 12);
  EXPECT_EQ(SpeedMeter::decode_context(10, 50), 61);
}

TEST(SpeedMeter, ErrorsOfStepsAndPoolsAreReported) {
  const auto decoder = small_decoder(1);
  SpeedMeter meter(*decoder, 32, 1);
  const auto crowded = meter.decode(8, 100, 2);
  ASSERT_FALSE(crowded.ok());
  EXPECT_EQ(crowded.error().kind, ErrorKind::kOutOfBudget);
  EXPECT_NE(crowded.error().message.find("2 sequences of 109 tokens"), std::string::npos) << crowded.error().message;
  const std::vector<int64_t> too_many = {17};
  const auto rows = meter.rows(too_many, 0, 1);
  ASSERT_FALSE(rows.ok());
  EXPECT_NE(rows.error().message.find("from 1 to 16"), std::string::npos) << rows.error().message;
  const std::vector<int64_t> one = {1};
  const auto deep = meter.rows(one, 5000, 1);
  ASSERT_FALSE(deep.ok());
  EXPECT_EQ(deep.error().kind, ErrorKind::kOutOfBudget);
  SpeedMeter broken(*decoder, 32, 1, []() -> Status { return Error{ErrorKind::kCorruptFile, "the file was cut", ""}; });
  for (const auto& result : {broken.prefill(40), broken.decode(4, 0, 1)}) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "the file was cut");
  }
}

TEST(ReadBandwidth, IsPositiveOrRefusedForWantOfMemory) {
  const auto measured = measure_read_bandwidth(2);
  if (measured.ok()) {
    EXPECT_GT(*measured, 0);
  } else {
    EXPECT_EQ(measured.error().kind, ErrorKind::kOutOfBudget);
  }
}

}  // namespace
}  // namespace vedette::engine
