#include "text/language_bias.h"

#include <gtest/gtest.h>

#include <limits>

#include "text/script_table.h"
#include "text/test_vocabulary.h"

namespace vedette::text {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Words at 259 and up, in this order.
const std::vector<std::string> kWords = {"hello",        "\u043c\u0438\u0440",
                                         "\u6f22\u5b57", "\u304b\u306a",
                                         "\u30ab\u30fc", "\ud55c\uad6d",
                                         "42",           "...",
                                         "a\u6f22",      "\u2581",
                                         "\u2581x1.",    "\u0966"};
enum Word { kHello, kMir, kHan, kKana, kKatakana, kHangul, kDigits, kDots, kMixed, kSpace, kLetterDigit, kDigit };

class LanguageBiasTest : public testing::Test {
 protected:
  float bias_of(int id, const LanguageBias& bias) const { return scripts_.table(bias)[static_cast<size_t>(id)]; }
  float word(Word word, const LanguageBias& bias) const { return bias_of(259 + word, bias); }
  static int byte(int value) { return 3 + value; }
  static LanguageBias of(std::string_view text) { return {.entries = *parse_language_bias(text)}; }

  Tokenizer tokenizer_ = std::move(*Tokenizer::create(sentencepiece_vocabulary(kWords)));
  TokenScripts scripts_{tokenizer_};
};

TEST_F(LanguageBiasTest, TokensOfALanguagesScripts) {
  EXPECT_EQ(word(kHello, of("en=-2")), -2);
  EXPECT_EQ(word(kMir, of("en=-2")), 0);
  EXPECT_EQ(word(kMir, of("uk=1.5")), 1.5f);
  EXPECT_EQ(word(kHangul, of("ko=-inf")), kNever);
  for (const Word one : {kHan, kKana, kKatakana}) EXPECT_EQ(word(one, of("ja=-1")), -1) << one;
  EXPECT_EQ(word(kHan, of("zh=-1")), -1);
  EXPECT_EQ(word(kKana, of("zh=-1")), 0);
  EXPECT_EQ(word(kLetterDigit, of("latn=3")), 3);
  for (const Word one : {kDigits, kDots, kSpace, kDigit}) EXPECT_EQ(word(one, of("en=1,hi=1")), 0) << one;
}

TEST_F(LanguageBiasTest, TheFirstLanguageWinsWhereScriptsOverlap) {
  EXPECT_EQ(word(kHan, of("ja=-1,zh=-2")), -1);
  EXPECT_EQ(word(kHan, of("zh=-2,ja=-1")), -2);
  EXPECT_EQ(word(kKana, of("zh=-2,ja=-1")), -1);
}

TEST_F(LanguageBiasTest, StrictTakesTokensWithAnyLetterOfIt) {
  LanguageBias bias = of("zh=-1");
  EXPECT_EQ(word(kMixed, bias), 0);
  bias.strict = true;
  EXPECT_EQ(word(kMixed, bias), -1);
  EXPECT_EQ(word(kHello, bias), 0);
}

TEST_F(LanguageBiasTest, WhatElseIsIncluded) {
  LanguageBias bias = of("en=-1");
  EXPECT_EQ(bias_of(2, bias), 0);  // </s>
  bias.numeric = true;
  EXPECT_EQ(word(kDigits, bias), -1);
  EXPECT_EQ(word(kDigit, bias), -1);
  EXPECT_EQ(word(kDots, bias), 0);
  bias.punctuation = true;
  EXPECT_EQ(word(kDots, bias), -1);
  EXPECT_EQ(word(kSpace, bias), 0);
  bias.special = true;
  EXPECT_EQ(bias_of(2, bias), -1);
}

TEST_F(LanguageBiasTest, FragmentsCountByWhatTheyCanBegin) {
  LanguageBias bias = of("ru=-1,zh=-2,ko=-3");
  EXPECT_EQ(bias_of(byte(0xd0), bias), 0);
  bias.byte_fragments = true;
  EXPECT_EQ(bias_of(byte(0xd0), bias), -1);  // U+0400 .. U+043F
  EXPECT_EQ(bias_of(byte(0xe5), bias), -2);  // U+5000 .. U+5FFF
  EXPECT_EQ(bias_of(byte(0xeb), bias), -3);  // U+B000 .. U+BFFF
  EXPECT_EQ(bias_of(byte(0xe3), bias), 0);   // kana, Bopomofo, Hangul letters and Han
  EXPECT_EQ(bias_of(byte(0x90), bias), 0);   // goes on in any character
  EXPECT_EQ(bias_of(byte(0xff), bias), 0);   // in none
  bias.strict = true;
  EXPECT_EQ(bias_of(byte(0xe3), bias), -2);
  EXPECT_EQ(bias_of(byte('a'), of("en=-1")), -1);  // a whole character
}

TEST_F(LanguageBiasTest, PartsOfCharactersWithinATokenAreFragments) {
  // Merges of the bytes of a space, D0 and BC: " \xd0", "\xd0\xbc".
  const std::string space = byte_letter(' '), d0 = byte_letter(0xd0), bc = byte_letter(0xbc), e3 = byte_letter(0xe3),
                    two = byte_letter(0x81);
  auto tokenizer = Tokenizer::create(byte_pair_vocabulary("gpt-2", {space + " " + d0, d0 + " " + bc, e3 + " " + two}));
  ASSERT_TRUE(tokenizer.ok());
  LanguageBias bias = of("ru=-1,hira=-2");
  const TokenScripts scripts(*tokenizer);
  EXPECT_EQ(scripts.table(bias)[257], 0);
  EXPECT_EQ(scripts.table(bias)[258], -1);
  bias.byte_fragments = true;
  EXPECT_EQ(scripts.table(bias)[257], -1);
  EXPECT_EQ(scripts.table(bias)[259], -2);  // E3 81: U+3040 .. U+307F
}

TEST(ParseLanguageBias, EntriesInOrder) {
  EXPECT_EQ(*parse_language_bias("ja=-inf,zh-TW=-10,ko=+5.0,ZH=2"),
            (LanguageBias::Entries{{"ja", kNever}, {"zh", 2}, {"ko", 5}}));
  EXPECT_TRUE(parse_language_bias("")->empty());
  for (const char* wrong :
       {"ja", "=1", "xx=1", "ja=", "ja=x", "ja=inf", "ja=nan", "ja=1e9", "ja=+-1", "ja ko=1", " =1", ",", "ja=1,,"}) {
    EXPECT_FALSE(parse_language_bias(wrong).ok()) << wrong;
  }
}

TEST(ScriptTable, IsInOrderAndASetOfItsClassesIsOneWord) {
  for (size_t i = 0; i < std::size(kScriptRanges); ++i) {
    EXPECT_LE(kScriptRanges[i].first, kScriptRanges[i].last);
    EXPECT_TRUE(i == 0 || kScriptRanges[i].first > kScriptRanges[i - 1].last) << i;
  }
  static_assert(static_cast<int>(Script::kPunctuation) < 64, "bits of a word");
}

}  // namespace
}  // namespace vedette::text
