// What is refused, and how it is said; the registry's promises.
#include <gtest/gtest.h>

#include <set>

#include "models/fixture_test.h"
#include "models/reference_backend_test.h"
#include "models/synthetic_test.h"

namespace vedette::models {
namespace {

Json small_config(const std::string& type) {
  Json config = Json::object();
  config.set("model_type", type);
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, int>>{{"vocab_size", 40},
                                                                                     {"hidden_size", 16},
                                                                                     {"intermediate_size", 24},
                                                                                     {"num_hidden_layers", 2},
                                                                                     {"num_attention_heads", 2},
                                                                                     {"num_key_value_heads", 1},
                                                                                     {"head_dim", 8},
                                                                                     {"max_position_embeddings", 64}})
    config.set(key, value);
  return config;
}

SyntheticCheckpoint full_checkpoint(const Json& config) {
  SyntheticCheckpoint checkpoint(config);
  const auto family = find_family(config);
  EXPECT_TRUE(family.ok());
  const auto spec = (*family)->build(*checkpoint);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  if (spec.ok())
    for (const ExpectedTensor& tensor : expected_tensors(*spec)) checkpoint.add(tensor.name, tensor.shape);
  return checkpoint;
}

std::string error_of(const Json& config) {
  SyntheticCheckpoint checkpoint(config);
  const auto spec = build_spec(*checkpoint);
  return spec.ok() ? "no error" : spec.error().message;
}

std::string error_with(const std::string& type, const std::string& key, Json value) {
  Json config = small_config(type);
  config.set(key, std::move(value));
  return error_of(config);
}

void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(Registry, IdsAndModelTypesAreUnique) {
  std::set<std::string_view> ids, types;
  for (const Family& family : families()) {
    EXPECT_TRUE(ids.insert(family.id).second) << family.id;
    EXPECT_FALSE(family.display_name.empty());
    EXPECT_FALSE(family.model_types.empty());
    for (const std::string_view type : family.model_types) EXPECT_TRUE(types.insert(type).second) << type;
  }
  EXPECT_EQ(ids.size(), 31u);
}

TEST(Registry, UnknownAndMissingModelTypes) {
  expect_parts(error_of(small_config("flurble")), {"'model_type' is 'flurble'", "known: llama"});
  expect_parts(error_of(Json::object()), {"'model_type' must be a string"});
  Json nested = Json::object();
  nested.set("model_type", "mistral3");
  Json text = Json::object();
  text.set("model_type", "flurble");
  nested.set("text_config", text);
  expect_parts(error_of(nested), {"'text_config.model_type' is 'flurble'"});
}

TEST(Registry, ModelTypeIsReadInAnyCase) {
  Json config = small_config("LLaMA");
  EXPECT_EQ((*find_family(config))->id, "llama");
}

TEST(Refusals, NameKeyAndValue) {
  expect_parts(error_with("llama", "hidden_act", "quick_gelu"), {"'hidden_act' is \"quick_gelu\"", "known: silu"});
  Json rope = Json::object();
  rope.set("rope_type", "dynamic");
  rope.set("factor", 2.0);
  expect_parts(error_with("llama", "rope_scaling", rope), {"'rope_type' is \"dynamic\"", "llama3"});
  rope.set("rope_type", "linear");
  rope.set("factor", "much");
  expect_parts(error_with("llama", "rope_parameters", rope), {"rope_parameters", "'factor'", "much"});
  expect_parts(error_with("llama", "partial_rotary_factor", 0.5), {"'partial_rotary_factor' is 0.5"});
  expect_parts(error_with("gemma3", "use_bidirectional_attention", true), {"'use_bidirectional_attention' is true"});
  expect_parts(error_with("qwen3", "layer_types", Json(Json::Array{"full_attention", "chunked_attention"})),
               {"'layer_types' is \"chunked_attention\""});
  expect_parts(error_with("qwen3", "layer_types", Json(Json::Array{"full_attention"})), {"one entry per layer (2)"});
  expect_parts(error_with("qwen3", "layer_types", Json(Json::Array{"full_attention", "sliding_attention"})),
               {"'sliding_window' gives no window"});
  Json quantization = Json::object();
  quantization.set("quant_method", "gptq");
  expect_parts(error_with("llama", "quantization_config", quantization), {"quant_method' is 'gptq'"});
}

TEST(Refusals, SizesOutsideTheirLimits) {
  expect_parts(error_with("llama", "vocab_size", int64_t{1} << 40), {"'vocab_size'", "1099511627776"});
  expect_parts(error_with("llama", "hidden_size", 0), {"'hidden_size'", "found integer 0"});
  expect_parts(error_with("llama", "hidden_size", "16"), {"'hidden_size'", "string"});
  expect_parts(error_with("llama", "num_hidden_layers", 1000000), {"'num_hidden_layers'", "1000000"});
  expect_parts(error_with("llama", "num_key_value_heads", 3), {"num_attention_heads 2", "num_key_value_heads 3"});
  expect_parts(error_with("llama", "head_dim", -8), {"'head_dim'", "-8"});
  expect_parts(error_with("llama", "rms_norm_eps", Json(-1.0)), {"'rms_norm_eps'"});
  Json uneven = small_config("llama");
  uneven.set("head_dim", nullptr);
  uneven.set("num_attention_heads", 3);
  uneven.set("num_key_value_heads", 3);
  expect_parts(error_of(uneven), {"hidden_size 16", "num_attention_heads 3"});
}

TEST(Tensors, MissingSurplusAndMisshapedAreNamedInOneError) {
  SyntheticCheckpoint checkpoint = full_checkpoint(small_config("llama"));
  ASSERT_TRUE(build_spec(*checkpoint).ok());
  checkpoint->tensors.erase("model.norm.weight");
  checkpoint.add("model.layers.1.mlp.up_proj.weight", {24, 17});
  for (int i = 0; i < 11; ++i) checkpoint.add("extra." + std::to_string(100 + i), {2});
  const auto spec = build_spec(*checkpoint);
  ASSERT_FALSE(spec.ok());
  expect_parts(spec.error().message,
               {"missing: 'model.norm.weight'", "'model.layers.1.mlp.up_proj.weight' is [24,17], expected [24,16]",
                "surplus: 'extra.100'", "'extra.107' and 3 more", "'llama'"});
  EXPECT_EQ(spec.error().message.find("extra.108"), std::string::npos);
}

TEST(Tensors, AnUnreadableTensorSaysWhy) {
  SyntheticCheckpoint checkpoint = full_checkpoint(small_config("llama"));
  checkpoint->tensors.erase("model.norm.weight");
  checkpoint->unreadable["model.norm.weight"] = "model.safetensors: dtype I64";
  expect_parts(build_spec(*checkpoint).error().message, {"unreadable: 'model.norm.weight'", "dtype I64"});
}

// Every family builds from a small config and reads back exactly the tensors it expects.
TEST(Tensors, EveryFamilyBuildsFromASmallConfig) {
  for (const Family& family : families()) {
    SyntheticCheckpoint checkpoint = full_checkpoint(small_config(std::string(family.model_types[0])));
    const auto spec = build_spec(*checkpoint);
    ASSERT_TRUE(spec.ok()) << family.id << ": " << spec.error().message;
    EXPECT_EQ(spec->family, family.id);
    EXPECT_EQ(spec->layers.size(), 2u) << family.id;
  }
}

TEST(Layers, WindowsFollowTheKeys) {
  const auto windows_of = [](const Json& config) {
    SyntheticCheckpoint checkpoint(config);
    const auto spec = (*find_family(config))->build(*checkpoint);
    EXPECT_TRUE(spec.ok());
    std::vector<int> windows;
    for (const LayerSpec& layer : spec->layers)
      for (const Part& part : layer.parts)
        if (const auto* attention = std::get_if<AttentionSpec>(&part)) windows.push_back(attention->window);
    return windows;
  };
  Json config = small_config("gemma3_text");
  config.set("num_hidden_layers", 7);
  config.set("sliding_window", 5);
  EXPECT_EQ(windows_of(config), (std::vector<int>{5, 5, 5, 5, 5, 0, 5}));
  config = small_config("qwen2");
  config.set("use_sliding_window", true);
  config.set("sliding_window", 9);
  config.set("max_window_layers", 1);
  EXPECT_EQ(windows_of(config), (std::vector<int>{0, 9}));
  config.set("use_sliding_window", false);
  EXPECT_EQ(windows_of(config), (std::vector<int>{0, 0}));
  config = small_config("mistral");
  EXPECT_EQ(windows_of(config), (std::vector<int>{4096, 4096}));
  config.set("sliding_window", nullptr);
  EXPECT_EQ(windows_of(config), (std::vector<int>{0, 0}));
  config = small_config("exaone4");
  config.set("num_hidden_layers", 6);
  config.set("sliding_window", 7);
  config.set("sliding_window_pattern", "LLG");
  EXPECT_EQ(windows_of(config), (std::vector<int>{7, 7, 0, 7, 7, 0}));
}

// LongRoPE's short factors hold up to the original context.
TEST(Layers, LongRopeLimitsTheContext) {
  Json config = small_config("phi3");
  Json rope = Json::object();
  rope.set("type", "su");
  rope.set("short_factor", Json(Json::Array{1.0, 1.0, 1.0, 1.0}));
  rope.set("long_factor", Json(Json::Array{2.0, 2.0, 2.0, 2.0}));
  config.set("rope_scaling", rope);
  config.set("original_max_position_embeddings", 32);
  SyntheticCheckpoint checkpoint(config);
  const auto spec = (*find_family(config))->build(*checkpoint);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->context_length, 32);
  rope.set("short_factor", Json(Json::Array{1.0, 1.0}));
  expect_parts(error_with("phi3", "rope_scaling", rope), {"'short_factor' must be an array of 4 positive numbers"});
}

// A family is data: the code that runs specs knows no family.
TEST(Decoder, ComparesNoFamilyName) {
  const std::filesystem::path folder = std::string(VEDETTE_SOURCE_DIR) + "/src/models";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!(name.starts_with("decoder") || name.starts_with("weight_loader")) || name.ends_with("_test.cpp")) continue;
    ++files;
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(text.find("spec.family"), std::string::npos) << name;
    for (const Family& family : families())
      EXPECT_EQ(text.find("\"" + std::string(family.id) + "\""), std::string::npos) << name << ": " << family.id;
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace vedette::models
