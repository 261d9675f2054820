#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/parameters.h"
#include "server/dialect.h"
#include "server/settings_fields.h"
#include "text/test_vocabulary.h"

namespace vedette::server {
namespace {

class SamplingFields : public testing::Test {
 protected:
  Status read(const Json& body, GenerateJob& job) {
    const DialectContext context{.request = request_,
                                 .model = "tiny",
                                 .tokenizer = *tokenizer_,
                                 .vocab_size = tokenizer_->size(),
                                 .context_length = 64,
                                 .defaults = job.sampling};
    return read_sampling_fields(body, context, job);
  }
  static Json body(std::string_view name, Json value) {
    Json out = Json::object();
    out.set(name, std::move(value));
    return out;
  }
  static double value_of(const sampling::SamplingParams& params, const sampling::Parameter& parameter) {
    return std::visit([&](auto member) { return static_cast<double>(params.*member); }, parameter.member);
  }
  // The values nearest to a range on both sides of it.
  static std::vector<Json> just_outside(const sampling::Parameter& parameter) {
    const auto [min, max] = parameter.range;
    if (!std::holds_alternative<double sampling::SamplingParams::*>(parameter.member))
      return {Json(static_cast<int64_t>(min) - 1), Json(static_cast<int64_t>(max) + 1)};
    constexpr double kFar = std::numeric_limits<double>::infinity();
    return {Json(std::nextafter(min, -kFar)), Json(std::nextafter(max, kFar))};
  }

  HttpRequest request_;
  Result<text::Tokenizer> tokenizer_ = text::Tokenizer::create(text::sentencepiece_vocabulary({"a"}));
};

TEST_F(SamplingFields, EveryNameTakesItsWholeRangeAndIsNamedBeyondIt) {
  ASSERT_TRUE(tokenizer_.ok());
  size_t names = 0;
  for (const sampling::Parameter& parameter : sampling::parameters())
    for (const std::string_view name : parameter.names) {
      for (const double bound : {parameter.range.min, parameter.range.max}) {
        GenerateJob job;
        const Status taken = read(body(name, bound), job);
        EXPECT_TRUE(taken.ok()) << name << ": " << (taken.ok() ? "" : taken.error().message);
        EXPECT_EQ(value_of(job.sampling, parameter), bound) << name;
      }
      for (const Json& value : just_outside(parameter)) {
        GenerateJob job;
        const Status refused = read(body(name, value), job);
        ASSERT_FALSE(refused.ok()) << name << " " << value.dump();
        EXPECT_EQ(refused.error().kind, ErrorKind::kInvalidRequest);
        EXPECT_EQ(refused.error().field, name);
        EXPECT_TRUE(refused.error().message.starts_with(std::string(name) + ": expected a")) << refused.error().message;
      }
      ++names;
    }
  EXPECT_GE(names, 26u);
}

TEST_F(SamplingFields, SettingsHaveTheSameRanges) {
  for (const sampling::Parameter& parameter : sampling::parameters()) {
    const std::string_view name = parameter.names[0];
    GenerationDefaults defaults;
    for (const double bound : {parameter.range.min, parameter.range.max}) {
      const SettingsChange change = change_settings(body(name, bound), false, {}, defaults);
      EXPECT_TRUE(change.rejected.empty()) << name;
      EXPECT_EQ(value_of(defaults.sampling, parameter), bound) << name;
    }
    for (const Json& value : just_outside(parameter)) {
      const SettingsChange change = change_settings(body(name, value), false, {}, defaults);
      ASSERT_EQ(change.rejected.size(), 1u) << name;
      EXPECT_EQ(change.rejected[0].first, name);
      EXPECT_EQ(value_of(defaults.sampling, parameter), parameter.range.max) << name;
    }
  }
}

TEST_F(SamplingFields, ZeroWithASignIsNoRepeatPenalty) {
  ASSERT_TRUE(tokenizer_.ok());
  GenerateJob job;
  const Status refused = read(body("repeat_penalty", -0.0), job);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "repeat_penalty: expected a number from 0.01 to 100, found -0.0");
}

TEST_F(SamplingFields, AFurtherSpellingIsTheSameParameter) {
  ASSERT_TRUE(tokenizer_.ok());
  GenerateJob job;
  ASSERT_TRUE(read(body("typ_p", 0.25), job).ok());
  EXPECT_EQ(job.sampling.typical_p, 0.25);
  EXPECT_NE(std::ranges::find(sampling_field_names(), "repetition_context_size"), sampling_field_names().end());
}

}  // namespace
}  // namespace vedette::server
