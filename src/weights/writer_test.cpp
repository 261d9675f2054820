#include "weights/writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/float16.h"
#include "ops/blocks.h"
#include "weights/affine_pack.h"
#include "weights/test_files.h"

namespace vedette::weights {
namespace {

using namespace testing;

// Groups as mlx.core.quantize packs them, worked out by hand: w = -8..7 at 4 bits is exact with scale 1, bias -8.
TEST(AffinePack, QuantizesLikeMlx) {
  std::vector<float> values(32);
  for (size_t i = 0; i < 32; ++i) values[i] = static_cast<float>(i % 16) - 8;
  std::vector<uint8_t> integers(16);
  float scale = 0, bias = 0;
  quantize_affine(values, 4, 32, {integers, {&scale, 1}, {&bias, 1}});
  EXPECT_EQ(scale, 1.0f);
  EXPECT_EQ(bias, -8.0f);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(integers[i], ((2 * i + 1) % 16) << 4 | (2 * i) % 16) << i;
  // The larger edge is above zero: the scale is negative and integer 0 is that edge.
  for (float& value : values) value = -value;
  quantize_affine(values, 4, 32, {integers, {&scale, 1}, {&bias, 1}});
  EXPECT_EQ(scale, -1.0f);
  EXPECT_EQ(bias, 8.0f);
}

TEST(AffinePack, EveryWidthRoundTrips) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    std::vector<float> values(64);
    for (size_t i = 0; i < 64; ++i) values[i] = std::sin(static_cast<float>(i)) * 0.3f;
    std::vector<uint8_t> integers(static_cast<size_t>(8 * bits));
    std::vector<float> scales(2), biases(2), back(64);
    quantize_affine(values, bits, 32, {integers, scales, biases});
    ops::HostMatrix matrix;
    matrix.scheme = ops::Scheme::kMlxAffine;
    matrix.rows = matrix.stored_rows = 1;
    matrix.cols = 64;
    matrix.bits = bits;
    matrix.group = 32;
    matrix.side_type = ops::DType::kF32;
    matrix.data = std::as_bytes(std::span(integers));
    matrix.scales = std::as_bytes(std::span(scales));
    matrix.biases = std::as_bytes(std::span(biases));
    ops::dequantize_row(matrix, 0, back);
    // Half a step inside, up to a whole one at the far end, because the near end is snapped to a multiple of the scale.
    for (size_t i = 0; i < 64; ++i) EXPECT_LE(std::abs(back[i] - values[i]), std::abs(scales[i / 32]) * 1.01f) << bits;
  }
}

// Blocks of a GGUF type with random-looking bytes and small scales.
std::string blocks(size_t count, size_t block_bytes, size_t n_scales) {
  std::string out;
  uint32_t state = 12345;
  for (size_t b = 0; b < count; ++b) {
    for (size_t s = 0; s < n_scales; ++s)
      out += raw(float_to_f16(0.01f * static_cast<float>(b % 7 + 1) * (s ? -3.0f : 1.0f)));
    for (size_t i = 2 * n_scales; i < block_bytes; ++i) {
      state = state * 1664525u + 1013904223u;
      out += static_cast<char>(state >> 24);
    }
  }
  return out;
}

// tiny_llama with its feed-forward as Q4_0, Q4_1 and Q8_0 blocks.
std::string quantized_llama() {
  GgufBuilder file = tiny_llama();
  for (GgufBuilderTensor& tensor : file.tensors) {
    if (tensor.name == "blk.0.ffn_gate.weight") tensor.type = 2, tensor.data = blocks(192, 18, 1);
    if (tensor.name == "blk.0.ffn_up.weight") tensor.type = 3, tensor.data = blocks(192, 20, 2);
    if (tensor.name == "blk.0.ffn_down.weight") tensor.type = 8, tensor.data = blocks(192, 34, 1);
    if (tensor.name == "blk.0.attn_q.weight") tensor.type = 2, tensor.data = blocks(128, 18, 1);
    if (tensor.name == "blk.0.attn_v.weight") tensor.type = 6, tensor.data = blocks(64, 22, 1);
    if (tensor.name == "blk.0.attn_k.weight") tensor.type = 7, tensor.data = blocks(64, 24, 2);
  }
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  file.texts("tokenizer.ggml.tokens", {"a", "b\xff", "c", "d", "e", "f", "g", "h"})
      .texts("tokenizer.ggml.merges", {"a b"});
  file.floats("tokenizer.ggml.scores", {0, -1, -2, -3, -4, -5, -6, -7}).u32("tokenizer.ggml.eos_token_id", 3);
  return file.build();
}

TEST(Convert, BlocksOf32AreRepackedWithoutLoss) {
  TempFolder folder;
  auto source = open_checkpoint(folder.write("m.gguf", quantized_llama()));
  ASSERT_TRUE(source.ok()) << source.error().message;
  int64_t last = 0, total = 0;
  const Status status = convert_checkpoint(*source, folder.path("out"), {}, [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  });
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(last, total);
  auto converted = open_checkpoint(folder.path("out"));
  ASSERT_TRUE(converted.ok()) << converted.error().message;
  EXPECT_EQ(converted->format, "mlx");
  EXPECT_EQ(converted->tensors.size(), source->tensors.size());
  for (const auto& [name, tensor] : source->tensors) {
    ASSERT_NE(converted->find(name), nullptr) << name;
    EXPECT_EQ(*to_float(tensor), *to_float(*converted->find(name))) << name;
  }
  EXPECT_EQ(converted->find("model.layers.0.mlp.down_proj.weight")->matrix.bits, 8);
  EXPECT_EQ(converted->find("model.layers.0.mlp.up_proj.weight")->matrix.scheme, ops::Scheme::kMlxAffine);
  EXPECT_EQ(converted->find("model.norm.weight")->matrix.scheme, ops::Scheme::kF32);
  const auto& before = std::get<GgufVocabulary>(source->tokenizer);
  const auto& after = std::get<GgufVocabulary>(converted->tokenizer);
  EXPECT_EQ(before.tokens, after.tokens);
  EXPECT_EQ(before.scores, after.scores);
  EXPECT_EQ(before.merges, after.merges);
  EXPECT_EQ(before.eos, after.eos);
  EXPECT_EQ(before.pre, after.pre);
}

TEST(Convert, DtypeAloneMakesEverythingDense) {
  TempFolder folder;
  auto source = open_checkpoint(folder.write("m.gguf", quantized_llama()));
  ASSERT_TRUE(source.ok());
  ConvertOptions options;
  options.dtype = ops::DType::kF32;
  options.shard_bytes = 20000;  // several shards
  ASSERT_TRUE(convert_checkpoint(*source, folder.path("f32"), options).ok());
  EXPECT_TRUE(std::filesystem::exists(folder.path("f32/model.safetensors.index.json")));
  auto converted = open_checkpoint(folder.path("f32"));
  ASSERT_TRUE(converted.ok()) << converted.error().message;
  EXPECT_EQ(converted->format, "safetensors");
  for (const auto& [name, tensor] : source->tensors) {
    EXPECT_EQ(converted->find(name)->matrix.scheme, ops::Scheme::kF32);
    EXPECT_EQ(*to_float(tensor), *to_float(*converted->find(name))) << name;
  }
}

TEST(Convert, QuantizesLinearAndEmbeddingWeightsOnly) {
  TempFolder folder;
  folder.write("src/config.json", R"({"model_type":"llama","quantization":null})");
  SafetensorsBuilder file;
  std::vector<float> values(8 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(static_cast<float>(i)) * 0.1f;
  file.add("model.embed_tokens.weight", "BF16", {8, 64}, bf16_bytes(values));
  file.add("model.layers.0.mlp.up_proj.weight", "BF16", {8, 64}, bf16_bytes(values));
  file.add("model.layers.0.self_attn.q_norm.weight", "BF16", {8, 64}, bf16_bytes(values));
  file.add("model.layers.0.mlp.odd.weight", "BF16", {8, 48}, bf16_bytes(std::vector<float>(8 * 48, 0.5f)));
  file.add("model.layers.0.mlp.up_proj.bias", "BF16", {8}, bf16_bytes(std::vector<float>(8, 1.0f)));
  folder.write("src/model.safetensors", file.build());
  folder.write("src/tokenizer.json", "{}");
  auto source = open_checkpoint(folder.path("src"));
  ASSERT_TRUE(source.ok()) << source.error().message;
  ConvertOptions options;
  options.bits = 6;
  const Status status = convert_checkpoint(*source, folder.path("q6"), options);
  ASSERT_TRUE(status.ok()) << status.error().message;
  auto converted = open_checkpoint(folder.path("q6"));
  ASSERT_TRUE(converted.ok()) << converted.error().message;
  EXPECT_EQ(converted->config.find("quantization")->dump(), R"({"group_size": 64, "bits": 6, "mode": "affine"})");
  EXPECT_EQ(converted->find("model.embed_tokens.weight")->matrix.bits, 6);
  EXPECT_EQ(converted->find("model.layers.0.self_attn.q_norm.weight")->matrix.scheme, ops::Scheme::kBF16);
  EXPECT_EQ(converted->find("model.layers.0.mlp.odd.weight")->matrix.scheme, ops::Scheme::kBF16);
  EXPECT_TRUE(std::holds_alternative<HfTokenizer>(converted->tokenizer));
  const auto before = *to_float(*source->find("model.layers.0.mlp.up_proj.weight"));
  const auto after = *to_float(*converted->find("model.layers.0.mlp.up_proj.weight"));
  // A step of 0.2 / 63, and the rounding of scales and biases to bfloat16.
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 0.0045f) << i;
  // Groups of 128 fit nothing here: refused, not a folder that only says it is quantized.
  options.group = 128;
  const Status none = convert_checkpoint(*source, folder.path("q128"), options);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("groups of 128 fit no layer weight"), std::string::npos) << none.error().message;
  // The converted one converts again, unchanged.
  ASSERT_TRUE(convert_checkpoint(*converted, folder.path("again"), {}).ok());
  auto again = open_checkpoint(folder.path("again"));
  ASSERT_TRUE(again.ok());
  for (const auto& [name, tensor] : converted->tensors)
    EXPECT_EQ(*to_float(tensor), *to_float(*again->find(name))) << name;
}

TEST(Convert, RefusesWhatItCannotDo) {
  TempFolder folder;
  auto source = open_checkpoint(folder.write("m.gguf", tiny_llama().build()));
  ASSERT_TRUE(source.ok());
  ConvertOptions options;
  options.bits = 7;
  EXPECT_EQ(convert_checkpoint(*source, folder.path("a"), options).error().kind, ErrorKind::kInvalidRequest);
  options.bits = 4;
  options.group = 48;
  EXPECT_EQ(convert_checkpoint(*source, folder.path("a"), options).error().kind, ErrorKind::kInvalidRequest);
  folder.write("taken/file", "x");
  const Status taken = convert_checkpoint(*source, folder.path("taken"), {});
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().message.find("exists already"), std::string::npos);
  // Values that float16 cannot hold: nothing is left behind.
  auto large = open_checkpoint(folder.write("large.gguf", tiny_llama(1e9f).build()));
  ASSERT_TRUE(large.ok());
  options = {};
  options.dtype = ops::DType::kF16;
  const Status overflow = convert_checkpoint(*large, folder.path("b"), options);
  ASSERT_FALSE(overflow.ok());
  EXPECT_NE(overflow.error().message.find("beyond f16"), std::string::npos) << overflow.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder.path("b")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("b.partial")));
}

}  // namespace
}  // namespace vedette::weights
