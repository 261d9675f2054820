// Every family against the reference implementation's logits, on the plain reference back end.
#include <gtest/gtest.h>

#include "models/fixture_test.h"
#include "models/reference_backend_test.h"

namespace vedette::models {
namespace {

class Families : public testing::TestWithParam<std::string> {};

TEST_P(Families, LogitsAndGreedyIdsEqualTheReference) {
  const std::string folder = fixture_folder() + "/" + GetParam();
  const auto checkpoint = weights::open_checkpoint(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  auto spec = build_spec(*checkpoint);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  const Reference reference = read_reference(folder + "/reference.safetensors");
  const DecoderConfig config = Runner::config(*spec, ops::DType::kF32);
  auto decoder = Decoder::load(*checkpoint, std::move(*spec), config, std::make_unique<ReferenceBackend>());
  ASSERT_TRUE(decoder.ok()) << decoder.error().message;
  Runner runner(**decoder);
  const auto rows = runner.prefill(reference.input_ids, 48);
  ASSERT_EQ(rows.size() * rows[0].size(), reference.logits.size());
  const float difference = largest_difference(rows, reference.logits);
  RecordProperty("largest_difference", std::to_string(difference));
  EXPECT_LE(difference, 2e-3f);
  EXPECT_EQ(runner.greedy(rows.back(), reference.greedy_ids.size()), reference.greedy_ids);
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(fixture_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace vedette::models
