// Forms of the families that the fixtures do not show (testdata/variants.json), and other places and layouts of the
// same weights, which must change nothing.
#include <gtest/gtest.h>

#include "models/fixture_test.h"
#include "models/reference_backend_test.h"
#include "models/synthetic_test.h"

namespace vedette::models {
namespace {

const Json& variants() {
  static const Json kVariants = test_data("variants.json");
  return kVariants;
}

const Json& variant(const std::string& name) {
  for (const Json& entry : variants().as_array())
    if (entry.find("name")->as_string() == name) return entry;
  static const Json kNone;
  return kNone;
}

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const Json& entry : variants().as_array()) names.push_back(entry.find("name")->as_string());
  return names;
}

std::vector<int64_t> to_shape(const Json& array) {
  std::vector<int64_t> shape;
  for (const Json& size : array.as_array()) shape.push_back(size.as_int());
  return shape;
}

// The variant's checkpoint with tensors renamed by `rename`.
template <typename Rename>
SyntheticCheckpoint make_checkpoint(const Json& entry, Json config, Rename rename) {
  SyntheticCheckpoint checkpoint(std::move(config));
  for (const auto& [name, shape] : entry.find("tensors")->as_object())
    checkpoint.add(rename(name), to_shape(shape), name);
  return checkpoint;
}

SyntheticCheckpoint make_checkpoint(const Json& entry) {
  return make_checkpoint(entry, *entry.find("config"), [](const std::string& name) { return name; });
}

std::vector<std::vector<float>> logits_of(const weights::Checkpoint& checkpoint, const Json& entry) {
  const auto decoder = load_decoder(checkpoint, std::make_unique<ReferenceBackend>());
  if (!decoder) return {};
  const auto all = Runner(*decoder).prefill(to_ids(*entry.find("input_ids")), 24);
  std::vector<std::vector<float>> rows;
  for (const int32_t row : to_ids(*entry.find("rows"))) rows.push_back(all.at(static_cast<size_t>(row)));
  return rows;
}

void expect_reference(const std::vector<std::vector<float>>& rows, const Json& entry) {
  std::vector<float> expected;
  for (const Json& value : entry.find("logits")->as_array()) expected.push_back(static_cast<float>(value.as_double()));
  ASSERT_EQ(rows.size() * (rows.empty() ? 0 : rows[0].size()), expected.size());
  EXPECT_LE(largest_difference(rows, expected), 1e-4f);
}

class Variants : public testing::TestWithParam<std::string> {};

TEST_P(Variants, LogitsEqualTheReference) {
  const Json& entry = variant(GetParam());
  SyntheticCheckpoint checkpoint = make_checkpoint(entry);
  expect_reference(logits_of(*checkpoint, entry), entry);
}

INSTANTIATE_TEST_SUITE_P(All, Variants, testing::ValuesIn(variant_names()),
                         [](const auto& info) { return info.param; });

TEST(Layouts, TextModelOfAMultimodalCheckpoint) {
  const Json& entry = variant("gemma3_old_keys");
  Json config = Json::object();
  config.set("model_type", "gemma3");
  config.set("text_config", *entry.find("config"));
  for (const std::string prefix : {"language_model.", "model.language_model."}) {
    const auto rename = [&](std::string name) {
      if (prefix == "model.language_model." && name.starts_with("model.")) name = name.substr(6);
      return prefix + name;
    };
    SyntheticCheckpoint checkpoint = make_checkpoint(entry, config, rename);
    checkpoint.add("vision_tower.patch.weight", {4, 4});
    checkpoint.add("multi_modal_projector.weight", {4, 4});
    expect_reference(logits_of(*checkpoint, entry), entry);
  }
}

TEST(Layouts, AStoredHeadWinsOverATie) {
  const Json& entry = variant("qwen3_bias");
  SyntheticCheckpoint checkpoint = make_checkpoint(entry);
  const auto tied = logits_of(*checkpoint, entry);
  checkpoint.add("lm_head.weight", {96, 32}, std::string("model.embed_tokens.weight"));
  EXPECT_EQ(logits_of(*checkpoint, entry), tied);
  checkpoint.add("lm_head.weight", {96, 32}, std::string("another"));
  EXPECT_NE(logits_of(*checkpoint, entry), tied);
}

// Rotary tables and masks saved as buffers are not weights.
TEST(Layouts, SavedBuffersAreIgnored) {
  const Json& llama = variant("llama_linear");
  SyntheticCheckpoint checkpoint = make_checkpoint(llama);
  checkpoint.add("model.layers.0.self_attn.rotary_emb.inv_freq", {4});
  expect_reference(logits_of(*checkpoint, llama), llama);
  const Json& gpt2 = variant("gpt2_scaled");
  SyntheticCheckpoint masked = make_checkpoint(gpt2);
  masked.add("transformer.h.0.attn.bias", {1, 1, 64, 64});
  masked.add("transformer.h.0.attn.masked_bias", {});
  expect_reference(logits_of(*masked, gpt2), gpt2);
}

// GPT-2 without "transformer.", and with its weights as ordinary [out, in] linears.
TEST(Layouts, Gpt2WithoutPrefixAndTransposed) {
  const Json& entry = variant("gpt2_scaled");
  const auto bare = [](const std::string& name) { return name.substr(std::string("transformer.").size()); };
  SyntheticCheckpoint checkpoint = make_checkpoint(entry, *entry.find("config"), bare);
  expect_reference(logits_of(*checkpoint, entry), entry);
  SyntheticCheckpoint turned = make_checkpoint(entry);
  for (const auto& [name, json_shape] : entry.find("tensors")->as_object()) {
    const std::vector<int64_t> shape = to_shape(json_shape);
    if (shape.size() != 2 || !name.starts_with("transformer.h.")) continue;
    const auto in = static_cast<size_t>(shape[0]), out = static_cast<size_t>(shape[1]);
    const std::vector<float> values = synthetic_values(name, in * out, shape[1], 2);
    std::vector<float> transposed(values.size());
    for (size_t i = 0; i < in; ++i)
      for (size_t o = 0; o < out; ++o) transposed[o * in + i] = values[i * out + o];
    turned.add(name, {shape[1], shape[0]}, transposed);
  }
  expect_reference(logits_of(*turned, entry), entry);
}

}  // namespace
}  // namespace vedette::models
