// The two real models' tokenizers against the reference libraries (tests/golden/tokenizer/README.md).
//
// The models are not in the repository: VEDETTE_TEST_MODELS names the folder that holds both files. These tests fail
// without it; leave them out with `ctest -LE models`.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "text/chat_prompt.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace vedette::text {
namespace {

using Ids = std::vector<int32_t>;
constexpr char kSmolLm2[] = "SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr char kGemma[] = "gemma-3-270m.Q4_K_M.gguf";
constexpr uint64_t kSame = 1'000'000;

std::string golden(const std::string& name) {
  auto text = read_text_file(std::string(VEDETTE_SOURCE_DIR) + "/tests/golden/tokenizer/" + name, 1 << 24);
  EXPECT_TRUE(text.ok()) << name;
  return text.ok() ? *text : std::string();
}

// Unsigned LEB128 numbers.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool done() const { return at_ >= bytes_.size(); }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::string text(size_t size) {
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  Ids ids(uint64_t count) {
    Ids list;
    for (uint64_t i = 0; i < count; ++i) list.push_back(static_cast<int32_t>(number()));
    return list;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

std::vector<std::string> strings() {
  Reader reader(golden("strings.bin"));
  std::vector<std::string> list;
  while (!reader.done()) list.push_back(reader.text(reader.number()));
  return list;
}

Result<weights::Checkpoint> open_model(const std::string& file) {
  const char* folder = std::getenv("VEDETTE_TEST_MODELS");
  if (folder == nullptr)
    return Error{ErrorKind::kNotFound, "VEDETTE_TEST_MODELS is not set: the folder of " + file + " expected", ""};
  return weights::open_checkpoint(std::string(folder) + "/" + file, {.tensors = false});
}

void expect_golden(const char* file, const std::string& ids_file) {
  const auto model = open_model(file);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto tokenizer = Tokenizer::create(model->tokenizer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const std::vector<std::string> texts = strings();
  ASSERT_EQ(texts.size(), 2000u);
  Reader reader(golden(ids_file));
  for (const std::string& text : texts) {
    const Ids parsed = reader.ids(reader.number());
    const uint64_t count = reader.number();
    const Ids literal = count == kSame ? parsed : reader.ids(count);
    EXPECT_EQ(*tokenizer->encode(text, {false, true}), parsed) << Json(repair_utf8(text)).dump();
    EXPECT_EQ(*tokenizer->encode(text, {false, false}), literal) << Json(repair_utf8(text)).dump();
    Detokenizer detokenizer(*tokenizer);
    std::string streamed;
    for (const int32_t id : literal) streamed += detokenizer.push(id);
    streamed += detokenizer.finish();
    EXPECT_EQ(streamed, repair_utf8(tokenizer->decode(literal))) << Json(repair_utf8(text)).dump();
  }
  EXPECT_TRUE(reader.done());
}

TEST(TokenizerGolden, SmolLm2) {
  expect_golden(kSmolLm2, "ids_smollm2.bin");
}
TEST(TokenizerGolden, Gemma) {
  expect_golden(kGemma, "ids_gemma.bin");
}

TEST(TokenizerGolden, GemmaSentenceBosAndSpeed) {
  const auto model = open_model(kGemma);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = Tokenizer::create(model->tokenizer);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  RecordProperty("load_ms", static_cast<int>(taken.count() * 1000));
  EXPECT_EQ(*tokenizer->encode("In 1969, the first people to walk on the Moon"),
            (Ids{2, 902, 236743, 236770, 236819, 236825, 236819, 236764, 506, 1171, 1331, 531, 3727, 580, 506, 19656}));
  EXPECT_EQ(tokenizer->bos(), 2);
  EXPECT_EQ(*encode_chat(*tokenizer, "<bos><start_of_turn>user\nHi<end_of_turn>\n"),
            (Ids{2, 105, 2364, 107, 10979, 106, 107}));
  for (const std::string& text : strings()) {
    const std::string valid = repair_utf8(text);
    std::string spaced = valid;  // the space mark and a space are one and the same
    for (size_t at = 0; (at = spaced.find("\xe2\x96\x81", at)) != std::string::npos;) spaced.replace(at, 3, " ");
    EXPECT_EQ(tokenizer->decode(*tokenizer->encode(text, {false, false})), spaced);
  }
}

TEST(TokenizerGolden, SmolLm2ChatTemplateEqualsTransformers) {
  const auto model = open_model(kSmolLm2);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto tokenizer = Tokenizer::create(model->tokenizer);
  const auto chat_template = ChatTemplate::parse(model->chat_template);
  ASSERT_TRUE(tokenizer.ok());
  ASSERT_TRUE(chat_template.ok()) << chat_template.error().message;
  const auto cases = parse_json(golden("chat_cases.json"), "chat_cases.json");
  ASSERT_TRUE(cases.ok());
  int compared = 0;
  for (const Json& one : cases->find("cases")->as_array()) {
    if (one.find("template")->as_string() != "SmolLM2") continue;
    const Json& given = *cases->find("inputs")->find(one.find("input")->as_string());
    ChatRenderInput input;
    input.messages = *given.find("messages");
    if (const Json* add = given.find("add_generation_prompt")) input.add_generation_prompt = add->as_bool();
    const auto rendered = chat_template->render(input);
    if (const Json* text = one.find("text")) {
      ASSERT_TRUE(rendered.ok()) << rendered.error().message;
      EXPECT_EQ(*rendered, text->as_string());
      // <|im_start|> is this model's BOS: the chat begins with the one that the template writes.
      EXPECT_EQ(encode_chat(*tokenizer, *rendered)->front(), *tokenizer->bos());
      EXPECT_NE(encode_chat(*tokenizer, *rendered)->at(1), *tokenizer->bos());
      ++compared;
    } else {
      EXPECT_FALSE(rendered.ok());
    }
  }
  EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace vedette::text
