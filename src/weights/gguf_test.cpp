#include "weights/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "weights/checkpoint.h"
#include "weights/gguf_architectures.h"
#include "weights/gguf_tensors.h"
#include "weights/readers.h"
#include "weights/test_files.h"

namespace vedette::weights {
namespace {

using namespace testing;

// The checkpoint keeps the bytes.
Result<Checkpoint> read(std::string text) {
  auto kept = std::make_shared<std::pair<std::string, std::shared_ptr<const void>>>(std::move(text), nullptr);
  auto checkpoint = read_gguf_bytes(std::as_bytes(std::span(kept->first.data(), kept->first.size())), "test.gguf");
  if (!checkpoint.ok()) return checkpoint;
  kept->second = std::move(checkpoint->storage);
  checkpoint->storage = std::move(kept);
  return checkpoint;
}

TEST(Gguf, LlamaBecomesHuggingFace) {
  GgufBuilder file = tiny_llama();
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  file.texts("tokenizer.ggml.tokens", {"a", "b", "c", "<|im_end|>", "e", "f", "g", "h"});
  file.ints("tokenizer.ggml.token_type", {1, 1, 1, 3, 1, 1, 1, 1});
  file.texts("tokenizer.ggml.merges", {"a b"})
      .u32("tokenizer.ggml.eos_token_id", 2)
      .boolean("tokenizer.ggml.add_bos_token", false);
  file.text("tokenizer.chat_template", "{{ x }}").f32("general.sampling.temp", 0.7f);
  const std::string bytes = file.build();
  auto checkpoint = read(bytes);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const Json& config = checkpoint->config;
  EXPECT_EQ(config.find("model_type")->as_string(), "llama");
  EXPECT_EQ(config.find("hidden_size")->as_int(), 64);
  EXPECT_EQ(config.find("num_key_value_heads")->as_int(), 2);
  EXPECT_EQ(config.find("head_dim")->as_int(), 16);
  EXPECT_EQ(config.find("vocab_size")->as_int(), 8);
  EXPECT_EQ(config.find("rms_norm_eps")->as_double(), 1e-5);
  EXPECT_EQ(config.find("rope_theta")->as_double(), 50000.0);
  EXPECT_TRUE(config.find("tie_word_embeddings")->as_bool());
  EXPECT_EQ(config.find("eos_token_id")->dump(), "[2, 3]");
  EXPECT_EQ(checkpoint->chat_template, "{{ x }}");
  EXPECT_EQ(checkpoint->generation_config.find("temperature")->as_double(), 0.7);
  const auto& vocabulary = std::get<GgufVocabulary>(checkpoint->tokenizer);
  EXPECT_EQ(vocabulary.tokens.size(), 8u);
  EXPECT_EQ(vocabulary.eos, 2);
  EXPECT_EQ(vocabulary.add_bos, false);
  EXPECT_FALSE(vocabulary.bos.has_value());
  for (const char* name : {"model.embed_tokens.weight", "model.norm.weight", "model.layers.0.input_layernorm.weight",
                           "model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.down_proj.weight"})
    EXPECT_NE(checkpoint->find(name), nullptr) << name;
  EXPECT_EQ(checkpoint->find("model.layers.0.mlp.down_proj.weight")->shape, (std::vector<int64_t>{64, 96}));
}

// The converter puts rows i and i + head_dim / 2 of each head next to each other.
TEST(Gguf, RowsOfQueriesAndKeysAreInHuggingFaceOrder) {
  auto checkpoint = read(tiny_llama().build());
  ASSERT_TRUE(checkpoint.ok());
  const auto stored_first = [&](const char* name) {
    const StoredTensor& tensor = *checkpoint->find(name);
    const auto values = *to_float(tensor);
    const auto* raw_values = reinterpret_cast<const float*>(tensor.matrix.data.data());
    const auto cols = static_cast<size_t>(tensor.matrix.cols);
    const auto heads = static_cast<size_t>(tensor.matrix.rows) / 16;
    for (size_t head = 0; head < heads; ++head)
      for (size_t half = 0; half < 2; ++half)
        for (size_t i = 0; i < 8; ++i)
          EXPECT_EQ(values[(head * 16 + half * 8 + i) * cols], raw_values[(head * 16 + 2 * i + half) * cols]) << name;
  };
  stored_first("model.layers.0.self_attn.q_proj.weight");
  stored_first("model.layers.0.self_attn.k_proj.weight");
  EXPECT_TRUE(checkpoint->find("model.layers.0.self_attn.v_proj.weight")->matrix.row_map.empty());
}

// Minimal metadata of an architecture, one layer, hidden 8, 2 heads of 4.
GgufBuilder small(const std::string& architecture) {
  GgufBuilder out;
  out.text("general.architecture", architecture).u32(architecture + ".block_count", 1);
  out.u32(architecture + ".embedding_length", 8).u32(architecture + ".context_length", 16);
  out.u32(architecture + ".feed_forward_length", 16).u32(architecture + ".attention.head_count", 2);
  return out;
}

std::string counting(size_t count, float first = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return raw_all(values);
}

TEST(Gguf, NormWeightsLoseTheOneThatWasAdded) {
  for (const char* architecture : {"gemma", "gemma2", "gemma3", "nemotron"}) {
    GgufBuilder file = small(architecture);
    file.tensor("output_norm.weight", {4}, 0, raw_all<float>({1, 1.5, 0, 3}));
    file.tensor("output_norm.bias", {4}, 0, raw_all<float>({1, 1.5, 0, 3}));
    auto checkpoint = read(file.build());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(*to_float(*checkpoint->find("model.norm.weight")), (std::vector<float>{0, 0.5, -1, 2})) << architecture;
    EXPECT_EQ(*to_float(*checkpoint->find("model.norm.bias")), (std::vector<float>{1, 1.5, 0, 3})) << architecture;
  }
}

TEST(Gguf, NeoxRowsReturnToTheirHeads) {
  GgufBuilder file = small("gptneox");
  file.tensor("blk.0.attn_qkv.weight", {1, 24}, 0, counting(24));
  file.tensor("blk.0.attn_qkv.bias", {24}, 0, counting(24));
  auto checkpoint = read(file.build());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  // Hugging Face: head 0's q, k, v, then head 1's; stored: all q, all k, all v.
  const std::vector<float> expected = {0, 1, 2, 3, 8,  9,  10, 11, 16, 17, 18, 19,
                                       4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23};
  EXPECT_EQ(*to_float(*checkpoint->find("gpt_neox.layers.0.attention.query_key_value.weight")), expected);
  EXPECT_EQ(*to_float(*checkpoint->find("gpt_neox.layers.0.attention.query_key_value.bias")), expected);
}

TEST(Gguf, FusedWeightsAreSplitWhereTheFamilyHasThemApart) {
  GgufBuilder file = small("chatglm");
  file.u32("chatglm.attention.head_count_kv", 1);
  file.tensor("blk.0.attn_qkv.weight", {2, 16}, 0, counting(32));
  file.tensor("blk.0.attn_qkv.bias", {16}, 0, counting(16));
  auto checkpoint = read(file.build());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const std::string prefix = "model.layers.0.self_attn.";
  EXPECT_EQ(checkpoint->find(prefix + "q_proj.weight")->shape, (std::vector<int64_t>{8, 2}));
  EXPECT_EQ((*to_float(*checkpoint->find(prefix + "k_proj.weight")))[0], 16.0f);
  EXPECT_EQ(*to_float(*checkpoint->find(prefix + "v_proj.bias")), (std::vector<float>{12, 13, 14, 15}));
  GgufBuilder kept = small("phi3");
  kept.tensor("blk.0.attn_qkv.weight", {2, 24}, 0, counting(48));
  EXPECT_NE(read(kept.build())->find(prefix + "qkv_proj.weight"), nullptr);
}

TEST(Gguf, RopeFactorsBecomeTheRuleThatMadeThem) {
  // Factors that no original context explains make a table of their own.
  GgufBuilder file = small("llama");
  file.tensor("rope_freqs.weight", {2}, 0, raw_all<float>({2, 32}));
  auto checkpoint = read(file.build());
  ASSERT_TRUE(checkpoint.ok());
  const Json& scaling = *checkpoint->config.find("rope_scaling");
  EXPECT_EQ(scaling.find("rope_type")->as_string(), "longrope");
  EXPECT_EQ(scaling.find("long_factor")->dump(), "[2.0, 32.0]");
  EXPECT_TRUE(checkpoint->tensors.empty());

  GgufBuilder llama3 = small("llama");
  llama3.f32("llama.rope.freq_base", 500000)
      .u32("llama.attention.key_length", 128)
      .u32("llama.rope.dimension_count", 128);
  std::vector<float> table;
  for (int i = 0; i < 128; i += 2) {
    const double wavelength = 2 * M_PI * std::pow(500000.0, i / 128.0);
    const double smooth = (8192 / wavelength - 1) / 3;
    table.push_back(static_cast<float>(wavelength < 2048   ? 1
                                       : wavelength > 8192 ? 32
                                                           : 1 / ((1 - smooth) / 32 + smooth)));
  }
  llama3.tensor("rope_freqs.weight", {64}, 0, raw_all(table));
  const Json rule = *read(llama3.build())->config.find("rope_scaling");
  EXPECT_EQ(rule.dump(), R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, )"
                         R"("original_max_position_embeddings": 8192})");
}

TEST(Gguf, ApertusActivationParametersBecomeTensors) {
  GgufBuilder file = small("apertus");
  for (const char* key : {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"}) file.floats(key, {0.25f});
  auto checkpoint = read(file.build());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ((*to_float(*checkpoint->find("model.layers.0.mlp.act_fn.alpha_p")))[0], 0.25f);
  EXPECT_EQ(checkpoint->find("model.layers.0.mlp.act_fn.eps")->shape.size(), 0u);
}

TEST(Gguf, EveryArchitectureNamesItsTensors) {
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    EXPECT_FALSE(hf_tensor_name(architecture, "token_embd.weight").starts_with("token_embd")) << architecture.name;
    for (const char* stem : {"attn_output", "ffn_down", "ffn_up"})
      EXPECT_FALSE(hf_tensor_name(architecture, std::string("blk.11.") + stem + ".weight").starts_with("blk."))
          << architecture.name << " " << stem;
    GgufBuilder file = small(std::string(architecture.name));
    for (const char* key : {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"}) file.floats(key, {1});
    auto checkpoint = read(file.build());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_FALSE(checkpoint->config.find("model_type")->as_string().empty());
  }
}

TEST(Gguf, SplitFilesJoinFromAnyPart) {
  TempFolder folder;
  GgufBuilder whole = tiny_llama();
  GgufBuilder first = tiny_llama();
  first.tensors.resize(4);
  first.raw_value("split.no", 2, raw<uint16_t>(0)).raw_value("split.count", 2, raw<uint16_t>(2));
  first.raw_value("split.tensors.count", 5, raw<int32_t>(11));
  GgufBuilder second;
  second.raw_value("split.no", 2, raw<uint16_t>(1)).raw_value("split.count", 2, raw<uint16_t>(2));
  second.tensors.assign(whole.tensors.begin() + 4, whole.tensors.end());
  folder.write("m-00001-of-00002.gguf", first.build());
  folder.write("m-00002-of-00002.gguf", second.build());
  for (const std::string& path :
       {folder.path("m-00001-of-00002.gguf"), folder.path("m-00002-of-00002.gguf"), folder.path()}) {
    auto checkpoint = open_checkpoint(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->tensors.size(), 11u);
  }
}

std::string model_path(const char* file) {
  const char* folder = std::getenv("VEDETTE_TEST_MODELS");
  const std::string path = folder ? std::string(folder) + "/" + file : std::string();
  return !path.empty() && std::filesystem::exists(path) ? path : std::string();
}

float value_at(const Checkpoint& checkpoint, const char* name, int64_t row, int64_t col) {
  const StoredTensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) return NAN;
  StoredTensor one = *tensor;
  one.matrix.rows = 1;
  one.matrix.row_map = {
      static_cast<uint32_t>(tensor->matrix.row_map.empty() ? row : tensor->matrix.row_map[static_cast<size_t>(row)])};
  return (*to_float(one))[static_cast<size_t>(col)];
}

// Values that gguf-py's dequantize gives for these files.
TEST(RealModels, SmolLm2ValuesEqualTheReference) {
  const std::string path = model_path("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (path.empty()) GTEST_SKIP() << "VEDETTE_TEST_MODELS has no SmolLM2-135M-Instruct.Q4_1.gguf";
  auto checkpoint = open_checkpoint(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors.size(), 272u);
  EXPECT_EQ(value_at(*checkpoint, "model.embed_tokens.weight", 0, 0), -0x1.b468p-4f);
  EXPECT_EQ(value_at(*checkpoint, "model.embed_tokens.weight", 49151, 575), -0x1.55ap-5f);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.0.mlp.down_proj.weight", 575, 1535), -0x1.737p-3f);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.7.self_attn.k_proj.weight", 0, 0), -0x1.4cp-9f);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.7.self_attn.k_proj.weight", 32, 0), -0x1.2dp-4f);   // stored row 1
  EXPECT_EQ(value_at(*checkpoint, "model.layers.7.self_attn.k_proj.weight", 1, 5), -0x1.8d1p-3f);   // stored row 2
  EXPECT_EQ(value_at(*checkpoint, "model.layers.7.self_attn.k_proj.weight", 96, 3), 0x1.27a8p-3f);  // stored row 65
  EXPECT_EQ(value_at(*checkpoint, "model.norm.weight", 0, 575), 0x1.fcp+0f);
  EXPECT_EQ(std::get<GgufVocabulary>(checkpoint->tokenizer).merges.size(), 48900u);
}

TEST(RealModels, GemmaValuesEqualTheReference) {
  const std::string path = model_path("gemma-3-270m.Q4_K_M.gguf");
  if (path.empty()) GTEST_SKIP() << "VEDETTE_TEST_MODELS has no gemma-3-270m.Q4_K_M.gguf";
  auto checkpoint = open_checkpoint(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors.size(), 236u);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.0.self_attn.k_proj.weight", 255, 639), 0x1.8ap-6f);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.0.self_attn.o_proj.weight", 639, 1023), -0x1.75cep-7f);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.0.mlp.down_proj.weight", 5, 300), -0x1.cedap-7f);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.0.self_attn.v_proj.weight", 9, 99), 0x1.958cp-6f);
  EXPECT_EQ(value_at(*checkpoint, "model.layers.0.input_layernorm.weight", 0, 639), 9.5f);  // stored 10.5
  EXPECT_EQ(checkpoint->config.find("layer_types")->as_array()[5].as_string(), "full_attention");
  EXPECT_EQ(std::get<GgufVocabulary>(checkpoint->tokenizer).tokens.size(), 262144u);
}

}  // namespace
}  // namespace vedette::weights
