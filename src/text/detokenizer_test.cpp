#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "text/test_vocabulary.h"

namespace vedette::text {
namespace {

Tokenizer make(const weights::TokenizerSource& source) {
  auto tokenizer = Tokenizer::create(source);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

std::string utf8(char32_t c) {
  std::string out;
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
  }
  if (c >= 0x80) out += static_cast<char>(0x80 | (c & 0x3f));
  return out;
}

std::string stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string text;
  for (const int32_t id : ids) {
    const std::string_view piece = detokenizer.push(id);
    EXPECT_TRUE(is_valid_utf8(piece));
    text += piece;
  }
  return text.append(detokenizer.finish());
}

// Every code point, one byte a token: nothing is shown before the character is whole, and then all of it. The
// byte-level and the byte-fallback spelling give the same.
TEST(Detokenizer, EveryCodePointSplitAtEveryByte) {
  const Tokenizer bytes = make(byte_pair_vocabulary("gpt-2", {}));
  const Tokenizer fallback = make(sentencepiece_vocabulary({}));
  for (char32_t c = 1; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::string text = utf8(c);
    Detokenizer one(bytes), two(fallback);
    one.push('x');  // so that no leading space is dropped
    two.push(3 + 'x');
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      const std::string expected = i + 1 == text.size() ? text : "";
      const std::string_view a = one.push(bytes.id_of(byte_letter(byte)).value());
      const std::string_view b = two.push(3 + byte);
      if (a != expected || b != expected) FAIL() << "U+" << std::hex << static_cast<uint32_t>(c) << " byte " << i;
    }
    if (!one.finish().empty() || !two.finish().empty()) FAIL() << "U+" << std::hex << static_cast<uint32_t>(c);
  }
}

// A text cut into tokens at any two byte positions streams to itself.
TEST(Detokenizer, TokensThatCutCharactersAnywhere) {
  const std::string text = "ďábelské 😀 漢字";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      weights::GgufVocabulary vocabulary = byte_pair_vocabulary("gpt-2", {});
      std::vector<int32_t> ids;
      for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, first}, {first, second}, {second, text.size()}}) {
        std::string letters;
        for (size_t i = begin; i < end; ++i) letters += byte_letter(static_cast<uint8_t>(text[i]));
        if (begin == end) continue;
        const auto known = std::ranges::find(vocabulary.tokens, letters);
        ids.push_back(static_cast<int32_t>(known - vocabulary.tokens.begin()));
        if (known == vocabulary.tokens.end()) add_token(vocabulary, letters, PieceType::kNormal);
      }
      vocabulary.scores.clear();
      const Tokenizer tokenizer = make(vocabulary);
      EXPECT_EQ(stream(tokenizer, ids), text) << first << ", " << second;
    }
  }
}

TEST(Detokenizer, IllFormedBytesBecomeOneReplacementEach) {
  const Tokenizer tokenizer = make(byte_pair_vocabulary("gpt-2", {}));
  const auto id = [&](int byte) { return tokenizer.id_of(byte_letter(byte)).value(); };
  for (const std::string bytes :
       {"\xff", "a\xe2\x82", "\xe2\x82z", "\xf0\x9f\x98\xf0\x9f\x98\x80", "\x80\x80", "\xed\xa0\x80x"}) {
    std::vector<int32_t> ids;
    for (const char c : bytes) ids.push_back(id(static_cast<uint8_t>(c)));
    EXPECT_EQ(stream(tokenizer, ids), repair_utf8(bytes));
    EXPECT_EQ(tokenizer.decode(ids), bytes);
  }
  EXPECT_EQ(stream(tokenizer, {id(0xe2), id(0x82)}), "\xef\xbf\xbd");
}

TEST(Detokenizer, LeadingSpaceAndSpecialTokens) {
  const Tokenizer tokenizer = make(sentencepiece_vocabulary({"\xe2\x96\x81hi", "\xe2\x96\x81there"}));
  ASSERT_TRUE(tokenizer.strips_leading_space());
  EXPECT_EQ(stream(tokenizer, {1, 259, 260}), "hi there");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 259, 260}), "hi there");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 259, 2}, true), "<s> hi</s>");
  Detokenizer special(tokenizer, true);
  EXPECT_EQ(special.push(1), "<s>");
  EXPECT_EQ(special.push(259), " hi");
  EXPECT_EQ(special.push(3 + 0xc3), "");
  Detokenizer copied = special;
  EXPECT_EQ(copied.push(3 + 0xa9), "\xc3\xa9");
  EXPECT_EQ(special.push(3 + 0xa9), "\xc3\xa9");
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.token_bytes(1 << 30), "");
}

}  // namespace
}  // namespace vedette::text
