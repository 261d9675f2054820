// tokenizer.json: equal to the Python library, and any damage is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "text/chat_prompt.h"
#include "text/rust_bridge.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"

namespace vedette::text {
namespace {

const std::string kFolder = std::string(VEDETTE_SOURCE_DIR) + "/tests/golden/tokenizer/";

std::string read(const std::string& path) {
  auto text = read_text_file(path, 1 << 24);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : std::string();
}

std::vector<int32_t> ids_of(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

TEST(TokenizerJson, EqualsThePythonLibrary) {
  const auto cases = parse_json(read(kFolder + "json_cases.json"), "json_cases.json");
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  const auto& strings = cases->find("strings")->as_array();
  ASSERT_GE(strings.size(), 90u);
  int tokenizers = 0;
  for (const auto& [name, modes] : cases->find("ids")->as_object()) {
    ++tokenizers;
    auto tokenizer =
        Tokenizer::create(weights::HfTokenizer{read(kFolder + "json/" + name + ".json"), nullptr, nullptr});
    ASSERT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.error().message;
    for (const auto& [mode, lists] : modes.as_object()) {
      const EncodeOptions options{mode.ends_with("special"), mode.starts_with("parsed")};
      for (size_t i = 0; i < strings.size(); ++i) {
        const auto ids = tokenizer->encode(strings[i].as_string(), options);
        ASSERT_TRUE(ids.ok()) << ids.error().message;
        EXPECT_EQ(*ids, ids_of(lists.as_array()[i])) << name << " (" << mode << "): " << strings[i].dump();
      }
    }
  }
  EXPECT_EQ(tokenizers, 5);
}

// Our decoding token by token against the library's decoding of the whole, for texts that decode to valid UTF-8.
TEST(TokenizerJson, DecodesAsTheLibraryDoes) {
  const auto cases = parse_json(read(kFolder + "json_cases.json"), "json_cases.json");
  ASSERT_TRUE(cases.ok());
  int compared = 0;
  for (const auto& [name, modes] : cases->find("ids")->as_object()) {
    const std::string json = read(kFolder + "json/" + name + ".json");
    auto tokenizer = Tokenizer::create(weights::HfTokenizer{json, nullptr, nullptr});
    ASSERT_TRUE(tokenizer.ok());
    VtTokenizer* raw = nullptr;
    VtBytes error;
    ASSERT_EQ(vt_tokenizer_from_json(bytes_of(json), json.size(), nullptr, 0, &raw, &error), kVtOk);
    const RustTokenizer reference(raw);
    for (const Json& list : modes.find("parsed special")->as_array()) {
      const std::vector<int32_t> ids = ids_of(list);
      for (const bool special : {false, true}) {
        const std::string ours = tokenizer->decode(ids, special);
        if (!is_valid_utf8(ours)) continue;
        const std::vector<uint32_t> given(ids.begin(), ids.end());
        VtBytes text;
        ASSERT_EQ(vt_tokenizer_decode(reference.get(), given.data(), given.size(), special ? 0 : 1, &text, &error),
                  kVtOk);
        EXPECT_EQ(ours, take(text)) << name;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 500);
}

TEST(TokenizerJson, SideFilesAddTokensAndNameBos) {
  weights::HfTokenizer source = byte_level_json();
  const auto config = parse_json(R"({"bos_token": {"content": "<|start|>"}, "eos_token": "<|end|>", "unk_token": null,
      "added_tokens_decoder": {"257": {"content": "<|start|>", "special": true}, "258": {"content": "<think>", "special": false}},
      "additional_special_tokens": ["<|more|>"], "add_bos_token": true})",
                                 "tokenizer_config.json");
  ASSERT_TRUE(config.ok());
  source.tokenizer_config = *config;
  auto tokenizer = Tokenizer::create(source);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos(), 257);
  EXPECT_EQ(tokenizer->eos(), 256);
  EXPECT_EQ(tokenizer->size(), 260);
  EXPECT_TRUE(tokenizer->is_special(257));
  EXPECT_FALSE(tokenizer->is_special(258));
  EXPECT_TRUE(tokenizer->is_special(*tokenizer->id_of("<|more|>")));
  // The file has no post-processor, so nothing is put around a text, whatever the configuration says.
  EXPECT_EQ(*tokenizer->encode("a<think><|end|>"), (std::vector<int32_t>{'a', 258, 256}));
  EXPECT_EQ(tokenizer->encode("<|end|>", {.parse_special = false})->size(), 7u);
  EXPECT_EQ(tokenizer->token_bytes(256), "");
  EXPECT_EQ(tokenizer->token_bytes(256, true), "<|end|>");
  EXPECT_EQ(tokenizer->token_bytes(258), "<think>");
  source.tokenizer_config = nullptr;
  source.special_tokens_map = Json::object();
  source.special_tokens_map.set("bos_token", "<|end|>");
  EXPECT_EQ(Tokenizer::create(source)->bos(), 256);
}

// A rendered chat has BOS once if its template writes it, even where plain texts get one as well.
TEST(TokenizerJson, ChatHasOneBos) {
  auto tokenizer = Tokenizer::create(weights::HfTokenizer{read(kFolder + "json/byte_level.json"), nullptr, nullptr});
  ASSERT_TRUE(tokenizer.ok());
  const int32_t bos = tokenizer->id_of("<s>").value();
  const auto count = [&](const std::vector<int32_t>& ids) { return std::count(ids.begin(), ids.end(), bos); };
  EXPECT_EQ(count(*tokenizer->encode("hello")), 1);
  EXPECT_EQ(count(*encode_chat(*tokenizer, "<s>hello")), 1);
  EXPECT_EQ(count(*encode_chat(*tokenizer, "hello")), 0);
}

TEST(TokenizerJson, EmptyAndInvalidText) {
  auto tokenizer = Tokenizer::create(byte_level_json());
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_TRUE(tokenizer->encode("")->empty());
  EXPECT_EQ(*tokenizer->encode("\xff"), *tokenizer->encode("\xef\xbf\xbd"));
  EXPECT_EQ(tokenizer->decode(*tokenizer->encode(std::string("a\0b", 3))), std::string("a\0b", 3));
}

// ---- Damage -------------------------------------------------------------------------------------------------------

// A damaged file gives an error of one line, or a tokenizer that works; never a crash.
void expect_survives(const std::string& json) {
  const auto tokenizer = Tokenizer::create(weights::HfTokenizer{json, nullptr, nullptr});
  if (!tokenizer.ok()) {
    EXPECT_FALSE(tokenizer.error().message.empty());
    return;
  }
  for (const char* text : {"", "hello <|end|> world", "\xe4\xb8\xad 1234"})
    if (const auto ids = tokenizer->encode(text); ids.ok()) (void)tokenizer->decode(*ids);
}

TEST(TokenizerJsonDamage, WrongShapesAreErrors) {
  const std::string nested = std::string(5000, '[') + std::string(5000, ']');
  const std::string model = R"("model":{"type":"BPE","vocab":{"a":0},"merges":[]})";
  const std::string cases[] = {
      "",
      "null",
      "[]",
      "{}",
      "3",
      "\"x\"",
      "{",
      "not json",
      std::string("\0\xff", 2),
      nested,
      "{\"model\":" + nested + "}",
      R"({"version":"2.0",)" + model + "}",
      R"({"version":"1.0","model":null})",
      R"({"version":"1.0","model":{"type":"Nonsense","vocab":{}}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":[],"merges":[]}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":"x"},"merges":[]}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":3}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]}})",
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":99999999999},"merges":[]}})",
      R"({"version":"1.0","model":{"type":"BPE","dropout":7,"vocab":{"a":0},"merges":[]}})",
      R"({"version":"1.0","model":{"type":"Unigram","vocab":[["a",0.0]],"unk_id":9}})",
      R"({"version":"1.0","pre_tokenizer":{"type":"Split","pattern":{"Regex":"(["},"behavior":"Isolated","invert":false},)" +
          model + "}",
      R"({"version":"1.0","pre_tokenizer":{"type":"Nonsense"},)" + model + "}",
      R"({"version":"1.0","normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"},)" + model + "}",
      R"({"version":"1.0","normalizer":{"type":"Replace","pattern":{"Regex":"*"},"content":""},)" + model + "}",
      R"({"version":"1.0","decoder":{"type":"Nonsense"},)" + model + "}",
      R"({"version":"1.0","post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}}],"pair":[],"special_tokens":{}},)" +
          model + "}",
      R"({"version":"1.0","added_tokens":[{"id":0}],)" + model + "}",
      R"({"version":"1.0","added_tokens":3,)" + model + "}",
  };
  for (const std::string& json : cases) {
    const auto tokenizer = Tokenizer::create(weights::HfTokenizer{json, nullptr, nullptr});
    ASSERT_FALSE(tokenizer.ok()) << json.substr(0, 200);
    EXPECT_EQ(tokenizer.error().kind, ErrorKind::kCorruptFile) << tokenizer.error().message;
    EXPECT_NE(tokenizer.error().message.find("tokenizer.json"), std::string::npos) << tokenizer.error().message;
    EXPECT_EQ(tokenizer.error().message.find('\n'), std::string::npos) << tokenizer.error().message;
  }
}

TEST(TokenizerJsonDamage, AddedTokensOfAnySort) {
  const std::string model = R"("model":{"type":"BPE","vocab":{"a":0},"merges":[]})";
  for (const char* token :
       {R"({"id":0,"content":"","special":true})", R"({"id":7,"content":"x","special":true})",
        R"({"id":4000000000,"content":"x","special":false})", R"({"id":0,"content":"zz","special":true})"}) {
    std::string entry(token);
    entry.insert(entry.size() - 1, R"(,"single_word":false,"lstrip":true,"rstrip":true,"normalized":true)");
    expect_survives(R"({"version":"1.0","added_tokens":[)" + entry + "]," + model + "}");
  }
}

// An error that names the file and the part, in one line, and holds nothing of a library's own failure texts.
void expect_refused(const std::string& json, std::string_view part, const Json& config = nullptr) {
  const auto tokenizer = Tokenizer::create(weights::HfTokenizer{json, config, nullptr});
  ASSERT_FALSE(tokenizer.ok()) << json.substr(0, 200);
  const std::string& message = tokenizer.error().message;
  EXPECT_EQ(tokenizer.error().kind, ErrorKind::kCorruptFile) << message;
  EXPECT_TRUE(message.starts_with("tokenizer.json: ")) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
  for (const char* raw : {"\n", "unwrap", "panicked", "index out of", ".rs"})
    EXPECT_EQ(message.find(raw), std::string::npos) << message;
}

std::string with_model(const std::string& parts) {
  return R"({"version":"1.0",)" + parts + R"(,"model":{"type":"BPE","vocab":{"l":0,"y":1},"merges":[]}})";
}

TEST(TokenizerJsonDamage, RandomTokenizationIsRefused) {
  const auto model = [](const std::string& dropout) {
    return R"({"version":"1.0","model":{"type":"BPE","dropout":)" + dropout + R"(,"vocab":{"a":0},"merges":[]}})";
  };
  for (const char* dropout : {"0.5", "1", "1e-9", "7"}) expect_refused(model(dropout), "dropout");
  for (const char* dropout : {"0", "0.0", "null"})
    EXPECT_TRUE(Tokenizer::create(weights::HfTokenizer{model(dropout), nullptr, nullptr}).ok()) << dropout;
}

TEST(TokenizerJsonDamage, ReplacementsThatBlowUpAreRefused) {
  const auto replace = [](const std::string& kind, const std::string& pattern, const std::string& content) {
    return R"({"type":"Replace","pattern":{")" + kind + R"(":")" + pattern + R"("},"content":")" + content + R"("})";
  };
  const std::string once = replace("String", "l", std::string(100, 'l'));
  const std::string five = once + "," + once + "," + once + "," + once + "," + once;
  const std::string token = R"("added_tokens":[{"id":2,"content":"lll","special":false,"single_word":false,)"
                            R"("lstrip":false,"rstrip":false,"normalized":true}],)";
  expect_refused(with_model(token + R"("normalizer":{"type":"Sequence","normalizers":[)" + five + "]}"),
                 "normalizer: ");
  expect_refused(with_model(R"("decoder":{"type":"Sequence","decoders":[)" + five + "]}"), "decoder: ");
  for (const auto& [kind, pattern] : {std::pair("String", ""), {"Regex", ""}, {"Regex", "x*"}, {"Regex", "^"}})
    expect_refused(with_model(R"("normalizer":)" + replace(kind, pattern, "y")), "at least one character");
  // Seen only in use: an error or ids, and never the library's own words.
  const std::string ahead = with_model(R"("normalizer":)" + replace("Regex", "(?=l)", "y"));
  auto tokenizer = Tokenizer::create(weights::HfTokenizer{ahead, nullptr, nullptr});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  if (const auto ids = tokenizer->encode("yyll"); !ids.ok()) {
    EXPECT_TRUE(ids.error().message.starts_with("tokenizer.json: internal error")) << ids.error().message;
    EXPECT_EQ(ids.error().message.find("unwrap"), std::string::npos) << ids.error().message;
  }
  const std::string plain = with_model(R"("normalizer":)" + replace("String", "a", "l"));
  tokenizer = Tokenizer::create(weights::HfTokenizer{plain, nullptr, nullptr});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("ay"), (std::vector<int32_t>{0, 1}));
}

TEST(TokenizerJsonDamage, IdsThatDoNotFitAreRefused) {
  const auto added = [](const std::string& tokens) { return with_model(R"("added_tokens":[)" + tokens + "]"); };
  const auto token = [](int64_t id, const std::string& content) {
    return R"({"id":)" + std::to_string(id) + R"(,"content":")" + content +
           R"(","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false})";
  };
  expect_refused(added(token(7, "<a>")), "added token '<a>'");
  expect_refused(added(token(0, "<a>")), "added token '<a>'");
  expect_refused(added(token(1, "l")), "added token 'l'");
  expect_refused(added(token(2, "<a>") + "," + token(2, "<b>")), "added token '<b>'");
  expect_refused(added(token(4000000000, "<a>")), "added token '<a>'");
  expect_refused(R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})",
                 "'a' and 'b' for id 0");
  const auto config =
      parse_json(R"({"added_tokens_decoder":{"9":{"content":"<b>","special":true}}})", "tokenizer_config.json");
  ASSERT_TRUE(config.ok());
  expect_refused(added(token(2, "<a>")), "'<b>' with id 9", *config);
  auto tokenizer = Tokenizer::create(
      weights::HfTokenizer{added(token(0, "l") + "," + token(2, "<a>") + "," + token(3, "<b>")), nullptr, nullptr});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->size(), 4);
  // Ids need not be dense: the size reaches past the largest.
  tokenizer = Tokenizer::create(weights::HfTokenizer{
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0,"b":9},"merges":[]}})", nullptr, nullptr});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->size(), 10);
}

TEST(TokenizerJsonDamage, CutAndChangedAnywhere) {
  std::mt19937 random(7);
  for (const auto& file : std::filesystem::directory_iterator(kFolder + "json")) {
    const std::string whole = read(file.path());
    for (int i = 0; i < 60; ++i) expect_survives(whole.substr(0, random() % whole.size()));
    for (int i = 0; i < 150; ++i) {
      std::string changed = whole;
      for (unsigned n = random() % 4 + 1; n > 0; --n) {
        const size_t at = random() % changed.size();
        switch (random() % 3) {
          case 0:
            changed[at] = static_cast<char>(random());
            break;
          case 1:
            changed.erase(at, random() % 20);
            break;
          default:
            changed.insert(at, changed.substr(random() % changed.size(), random() % 20));
        }
      }
      expect_survives(changed);
    }
  }
}

}  // namespace
}  // namespace vedette::text
