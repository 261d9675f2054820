#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include "weights/checkpoint.h"
#include "weights/quantization.h"
#include "weights/readers.h"
#include "weights/test_files.h"

namespace vedette::weights {
namespace {

using namespace testing;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Safetensors, ReadsEveryFloatType) {
  TempFolder folder;
  folder.write("config.json", R"({"model_type":"llama"})");
  SafetensorsBuilder file;
  file.add_raw("__metadata__", R"({"format":"pt"})");
  file.add("f32", "F32", {2, 2}, raw_all<float>({1, -2, 3.5, 0}));
  file.add("bf16", "BF16", {3}, bf16_bytes({0.5, -1.5, 4}));
  file.add("f16", "F16", {1, 3}, f16_bytes({0.25, 65504, -0.125}));
  file.add("scalar", "F32", {}, raw(7.0f));
  file.add("ids", "I64", {1}, raw<int64_t>(5));
  folder.write("model.safetensors", file.build());
  auto opened = open_checkpoint(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->format, "safetensors");
  EXPECT_EQ(*to_float(*opened->find("f32")), (std::vector<float>{1, -2, 3.5, 0}));
  EXPECT_EQ(*to_float(*opened->find("bf16")), (std::vector<float>{0.5, -1.5, 4}));
  EXPECT_EQ(*to_float(*opened->find("f16")), (std::vector<float>{0.25, 65504, -0.125}));
  EXPECT_EQ(*to_float(*opened->find("scalar")), (std::vector<float>{7}));
  EXPECT_EQ(opened->find("f32")->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(opened->find("bf16")->matrix.rows, 1);
  EXPECT_EQ(opened->find("ids"), nullptr);
  EXPECT_NE(opened->unreadable.at("ids").find("dtype I64"), std::string::npos);
  EXPECT_TRUE(storage_intact(*opened).ok());
}

TEST(Safetensors, AcceptsNulPaddingAndUnalignedData) {
  SafetensorsBuilder file;
  file.add("a", "F32", {2}, raw_all<float>({1, 2}));
  const std::string nul = file.build('\0');
  EXPECT_TRUE(parse_safetensors(bytes_of(nul), "nul").ok());
  std::string header = file.header();
  while (header.size() % 4 != 1) header += ' ';
  const std::string odd = safetensors_bytes(header, raw_all<float>({1, 2}));
  auto checkpoint = read_safetensors_bytes(bytes_of(odd), Json::object(), "odd");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(checkpoint->find("a")->matrix.data.data()) % 4, 0u);
  EXPECT_EQ(*to_float(*checkpoint->find("a")), (std::vector<float>{1, 2}));
}

TEST(Safetensors, TruncationAfterOpeningIsNoticed) {
  TempFolder folder;
  folder.write("config.json", "{}");
  SafetensorsBuilder file;
  file.add("a", "F32", {16384}, std::string(65536, '\x01'));
  const std::string path = folder.write("model.safetensors", file.build());
  auto opened = open_checkpoint(folder.path());
  ASSERT_TRUE(opened.ok());
  std::filesystem::resize_file(path, 4096);
  ASSERT_TRUE(to_float(*opened->find("a")).ok());
  const Status status = storage_intact(*opened);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("truncated after it was opened"), std::string::npos);
}

// Regression: the index names shards that are not there while a good single file is.
TEST(Folder, IndexWithoutItsShardsFallsBackToTheSingleFile) {
  TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})");
  auto missing = open_checkpoint(folder.path());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.error().message.find("2 of 2 shards are missing: model-00001-of-00002.safetensors"),
            std::string::npos);
  SafetensorsBuilder file;
  file.add("a", "F32", {1}, raw(1.0f));
  folder.write("model.safetensors", file.build());
  auto opened = open_checkpoint(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_NE(opened->find("a"), nullptr);
}

TEST(Folder, ShardsAreJoinedAndTokenizerFilesRead) {
  TempFolder folder;
  folder.write("config.json",
               R"({"chat_template":[{"name":"tool","template":"T"},{"name":"default","template":"D"}]})");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  folder.write("m-1.safetensors", SafetensorsBuilder().add("a", "F32", {1}, raw(1.0f)).build());
  folder.write("m-2.safetensors", SafetensorsBuilder().add("b", "F32", {1}, raw(2.0f)).build());
  folder.write("tokenizer.json", "{\"model\":1}");
  folder.write("tokenizer_config.json", R"({"bos_token":"<s>"})");
  folder.write("generation_config.json", R"({"top_k":40})");
  auto opened = open_checkpoint(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ((*to_float(*opened->find("b")))[0], 2.0f);
  EXPECT_EQ(opened->chat_template, "D");
  EXPECT_EQ(opened->generation_config.find("top_k")->as_int(), 40);
  const auto& tokenizer = std::get<HfTokenizer>(opened->tokenizer);
  EXPECT_EQ(tokenizer.tokenizer_json, "{\"model\":1}");
  EXPECT_EQ(tokenizer.tokenizer_config.find("bos_token")->as_string(), "<s>");
  folder.write("chat_template.jinja", "J");
  EXPECT_EQ(open_checkpoint(folder.path())->chat_template, "J");
  OpenOptions options;
  options.tensors = false;
  EXPECT_TRUE(open_checkpoint(folder.path(), options)->tensors.empty());
}

// Two rows of 64 columns at 4 bits: row 0 counts 0..15 again and again, row 1 is all 15.
SafetensorsBuilder quantized_file() {
  std::vector<uint32_t> words;
  for (int i = 0; i < 8; ++i) words.push_back(i % 2 == 0 ? 0x76543210u : 0xfedcba98u);
  for (int i = 0; i < 8; ++i) words.push_back(0xffffffffu);
  SafetensorsBuilder file;
  file.add("l.weight", "U32", {2, 8}, raw_all(words));
  file.add("l.scales", "BF16", {2, 1}, bf16_bytes({0.5, 2}));
  file.add("l.biases", "BF16", {2, 1}, bf16_bytes({-1, 3}));
  return file;
}

TEST(MlxAffine, TripleBecomesOneTensor) {
  const std::string bytes = quantized_file().build();
  const Json config = *parse_json(R"({"quantization":{"bits":4,"group_size":64}})", "config.json");
  auto checkpoint = read_safetensors_bytes(bytes_of(bytes), config, "q");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->format, "mlx");
  ASSERT_EQ(checkpoint->tensors.size(), 1u);
  const StoredTensor& tensor = *checkpoint->find("l.weight");
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 64}));
  const auto values = *to_float(tensor);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(values[i], 0.5f * static_cast<float>(i % 16) - 1) << i;
    EXPECT_EQ(values[64 + i], 33.0f);
  }
}

TEST(MlxAffine, ShapesDecideWhereTheConfigurationDisagrees) {
  const std::string bytes = quantized_file().build();
  const auto read = [&](const char* text) {
    auto checkpoint = read_safetensors_bytes(bytes_of(bytes), *parse_json(text, "config.json"), "q");
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    const auto& matrix = checkpoint->find("l.weight")->matrix;
    return std::pair(matrix.bits, matrix.group);
  };
  EXPECT_EQ(read(R"({"quantization":{"bits":8,"group_size":64}})"), std::pair(4, 64));
  EXPECT_EQ(read(R"({"quantization":{"bits":8,"group_size":32}})"), std::pair(8, 32));
  EXPECT_EQ(read(R"({"quantization":{"bits":6,"group_size":128}})"), std::pair(2, 128));
  EXPECT_EQ(read(R"({"quantization":{"bits":4,"group_size":64,"l":{"bits":8,"group_size":32}}})"), std::pair(8, 32));
  EXPECT_EQ(read(R"({"quantization_config":{"bits":4,"group_size":64,"mode":"affine","other":false}})"),
            std::pair(4, 64));
}

TEST(Fixtures, EveryFamilyOpens) {
  const char* root = std::getenv("VEDETTE_FIXTURES");
  if (root == nullptr) GTEST_SKIP() << "VEDETTE_FIXTURES is not set: the folder of unpacked fixtures expected";
  int opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (!std::filesystem::exists(entry.path() / "model.safetensors")) continue;
    auto checkpoint = open_checkpoint(entry.path().string());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_GT(checkpoint->tensors.size(), 10u) << entry.path();
    EXPECT_EQ(checkpoint->find("logits"), nullptr) << "reference.safetensors is no part of the model";
    ++opened;
  }
  EXPECT_GT(opened, 30);
}

}  // namespace
}  // namespace vedette::weights
