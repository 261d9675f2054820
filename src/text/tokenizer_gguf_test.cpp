// Tokenizers from GGUF vocabularies, on small made-up ones. Real ones: tokenizer_golden_test.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "text/pre_tokenizers.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"

namespace vedette::text {
namespace {

using Ids = std::vector<int32_t>;
const std::string kMark(kSpaceMark);

Tokenizer make(const weights::TokenizerSource& source) {
  auto tokenizer = Tokenizer::create(source);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

Error refused(const weights::TokenizerSource& source) {
  auto tokenizer = Tokenizer::create(source);
  EXPECT_FALSE(tokenizer.ok());
  return tokenizer.ok() ? Error{} : tokenizer.error();
}

constexpr EncodeOptions kBare{.add_special = false};

// ---- SentencePiece ------------------------------------------------------------------------------------------------

TEST(SentencePiece, HighestScoreFirstThenLeftmost) {
  auto vocabulary = sentencepiece_vocabulary({"a", "b", "c", "bc", "ab", "abc"});  // bc before ab
  vocabulary.add_space_prefix = false;
  const Tokenizer tokenizer = make(vocabulary);
  const int32_t a = 259, ab = a + 4, bc = a + 3, abc = a + 5;
  EXPECT_EQ(*tokenizer.encode("abc", kBare), Ids{abc});
  EXPECT_EQ(*tokenizer.encode("abcb", kBare), (Ids{abc, a + 1}));
  EXPECT_EQ(*tokenizer.encode("abab", kBare), (Ids{ab, ab}));
  EXPECT_EQ(*tokenizer.encode("bcbc", kBare), (Ids{bc, bc}));
  // Of equal pairs the leftmost: aaa -> aa a.
  auto twins = sentencepiece_vocabulary({"a", "aa"});
  twins.add_space_prefix = false;
  EXPECT_EQ(*make(twins).encode("aaa", kBare), (Ids{260, 259}));
}

TEST(SentencePiece, SpacePrefixBosAndBytes) {
  const Tokenizer tokenizer = make(sentencepiece_vocabulary({kMark + "a", kMark}));
  EXPECT_EQ(*tokenizer.encode("a"), (Ids{1, 259}));
  EXPECT_EQ(*tokenizer.encode(" a"), (Ids{1, 260, 259}));
  EXPECT_EQ(*tokenizer.encode(""), Ids{1});
  EXPECT_EQ(*tokenizer.encode("a</s>a"), (Ids{1, 259, 2, 259}));  // the text after a control token begins anew
  EXPECT_EQ(*tokenizer.encode("\xc3\xa9", kBare), (Ids{260, 3 + 0xc3, 3 + 0xa9}));
  EXPECT_EQ(tokenizer.encode("</s>", {.add_special = false, .parse_special = false})->size(), 5u);
  EXPECT_EQ(tokenizer.decode(*tokenizer.encode("a\xc3\xa9 a")), "a\xc3\xa9 a");
}

TEST(SentencePiece, UserDefinedPiecesAreNeitherMergedNorSplit) {
  auto vocabulary = sentencepiece_vocabulary({"a", "b", "ab", "x"});
  vocabulary.add_space_prefix = false;
  add_token(vocabulary, "  ", PieceType::kUserDefined);  // 263
  add_token(vocabulary, "   ", PieceType::kUserDefined);
  add_token(vocabulary, "bx", PieceType::kUserDefined);
  const Tokenizer tokenizer = make(vocabulary);
  EXPECT_EQ(*tokenizer.encode("abx", kBare), (Ids{259, 265}));
  EXPECT_EQ(*tokenizer.encode("a     b", kBare), (Ids{259, 264, 263, 260}));
  EXPECT_EQ(*tokenizer.encode("a" + kMark + " b", kBare), (Ids{259, 263, 260}));  // a written mark is a space
  EXPECT_EQ(tokenizer.decode(Ids{259, 264, 263, 260}), "a     b");
}

TEST(SentencePiece, UnknownWithoutBytePiecesAndUnusedPieces) {
  weights::GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  add_token(vocabulary, "<unk>", PieceType::kUnknown);
  add_token(vocabulary, "<s>", PieceType::kControl);
  add_token(vocabulary, "a", PieceType::kNormal, -1);
  add_token(vocabulary, "aa", PieceType::kUnused, -2);
  add_token(vocabulary, "aaaa", PieceType::kNormal, -3);
  vocabulary.unknown = 0;
  vocabulary.add_space_prefix = false;
  const Tokenizer tokenizer = make(vocabulary);
  EXPECT_EQ(*tokenizer.encode("zzza", kBare), (Ids{0, 2}));    // one unknown for a run
  EXPECT_EQ(*tokenizer.encode("aaa", kBare), (Ids{2, 2, 2}));  // unused: given back as its parts
  EXPECT_EQ(*tokenizer.encode("aaaa", kBare), Ids{4});         // but it may be a step on the way
}

TEST(SentencePiece, SpecialTokensMayTakeTheSpaceAfter) {
  auto vocabulary = sentencepiece_vocabulary({kMark, "a"});
  for (const char* marker : {"<|user|>", "<|assistant|>", "<|placeholder1|>", "<|endoftext|>"})
    add_token(vocabulary, marker, PieceType::kControl);
  const Tokenizer tokenizer = make(vocabulary);
  EXPECT_EQ(*tokenizer.encode("<|user|>\n a", kBare), (Ids{261, 259, 260}));
  EXPECT_EQ(*tokenizer.encode("<|endoftext|> a", kBare), (Ids{264, 259, 259, 260}));
}

// ---- Byte pairs ---------------------------------------------------------------------------------------------------

TEST(BytePairs, MergesByRankWithinPieces) {
  const Tokenizer tokenizer = make(byte_pair_vocabulary("gpt-2", {"l l", "h e", "he ll", "\xc4\xa0 w"}));
  EXPECT_EQ(*tokenizer.encode("hello w", kBare), (Ids{259, 'o', 260}));
  EXPECT_EQ(*tokenizer.encode("he<|end|>ll", kBare), (Ids{258, 256, 257}));
  EXPECT_EQ(tokenizer.encode("<|end|>", {.add_special = false, .parse_special = false})->size(), 7u);
  EXPECT_EQ(*tokenizer.encode("he"), Ids{258});  // no BOS unless the file or the kind says so
  auto with_bos = byte_pair_vocabulary("gpt-2", {});
  with_bos.add_bos = true;
  with_bos.add_eos = true;
  EXPECT_EQ(*make(with_bos).encode("x"), (Ids{256, 'x', 256}));
  EXPECT_EQ(*make(byte_pair_vocabulary("llama-bpe", {})).encode("x"), (Ids{256, 'x'}));
}

// Every kind compiles and loses nothing.
TEST(BytePairs, EveryKindKeepsTheText) {
  const std::string text =
      "Hello,  world! It's 1234567 don't\r\n\tcafé ДОМ 中文，ひらがな 한국어 😀 ٣٤٥ x=1_000;\n\n  <end> "
      "IMGIMGABZ\u3000\u2028.";
  std::string kinds = pre_tokenizer_kinds() + ", ";
  int count = 0;
  for (size_t at = 0; at < kinds.size(); ++count) {
    const size_t end = kinds.find(", ", at);
    const std::string kind = kinds.substr(at, end - at);
    at = end + 2;
    auto vocabulary = byte_pair_vocabulary(kind, {});
    if (find_pre_tokenizer(kind)->byte_level == false) {
      for (int byte = 0; byte < 256; ++byte) add_token(vocabulary, fmt::format("<0x{:02X}>", byte), PieceType::kByte);
      add_token(vocabulary, kMark, PieceType::kNormal);
      vocabulary.scores.clear();
    }
    const Tokenizer tokenizer = make(vocabulary);
    const auto ids = tokenizer.encode(text, kBare);
    ASSERT_TRUE(ids.ok()) << kind << ": " << ids.error().message;
    EXPECT_EQ(tokenizer.decode(*ids), text) << kind;
  }
  EXPECT_GE(count, 85);
}

// Where the pieces end shows in which merges can happen.
TEST(BytePairs, KindsCutWhereTheirPatternsSay) {
  const std::vector<std::string> merges = {"1 2",  "12 3",       "123 4", "2 3", "3 4",
                                           "23 4", "\xc4\xa0 1", "' s",   "a '", "A B"};
  const auto pieces = [&](const std::string& kind, const std::string& text) {
    const Tokenizer tokenizer = make(byte_pair_vocabulary(kind, merges));
    std::string out;
    const Ids ids = *tokenizer.encode(text, kBare);
    for (const int32_t id : ids) out.append(out.empty() ? "" : "|").append(tokenizer.token_bytes(id));
    return out;
  };
  EXPECT_EQ(pieces("gpt-2", "x 1234"), "x| |1234");
  EXPECT_EQ(pieces("gpt-2", "1234"), "1234");
  EXPECT_EQ(pieces("smollm", "1234"), "1|2|3|4");
  EXPECT_EQ(pieces("llama-bpe", "1234"), "123|4");
  EXPECT_EQ(pieces("tiny_aya", "1234"), "1|234");
  EXPECT_EQ(pieces("tiny_aya", "1234a"), "123|4|a");
  EXPECT_EQ(pieces("afmoe", "1234"), "1|234");
  EXPECT_EQ(pieces("superbpe", "1234"), "1|234");
  EXPECT_EQ(pieces("qwen2", "1234"), "1|2|3|4");
  EXPECT_EQ(pieces("gpt-2", "a's"), "a|'s");
  EXPECT_EQ(pieces("llama-bpe", "AB"), "AB");
}

TEST(BytePairs, Gemma4TakesRunsOfNewlinesWhole) {
  auto vocabulary = byte_pair_vocabulary("", {});
  vocabulary.model = "gemma4";
  for (int byte = 0; byte < 256; ++byte) add_token(vocabulary, fmt::format("<0x{:02X}>", byte), PieceType::kByte);
  add_token(vocabulary, "\n\n", PieceType::kNormal);
  add_token(vocabulary, kMark, PieceType::kNormal);
  vocabulary.scores.clear();
  const Tokenizer tokenizer = make(vocabulary);
  EXPECT_EQ(*tokenizer.encode("a b\n\n"), (Ids{256, 'a', 514, 'b', 513}));
  EXPECT_EQ(tokenizer.decode(Ids{'a', 514, 'b', 513}), "a b\n\n");
}

TEST(WordPiece, LongestPiecesOfLowerCaseWords) {
  weights::GgufVocabulary vocabulary;
  vocabulary.model = "bert";
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) add_token(vocabulary, token, PieceType::kControl);
  for (const std::string& token : {kMark + "hel", std::string("lo"), kMark + "wor", std::string("ld"), kMark + "!"})
    add_token(vocabulary, token, PieceType::kNormal);
  vocabulary.unknown = 1;
  vocabulary.cls = 2;
  vocabulary.separator = 3;
  const Tokenizer tokenizer = make(vocabulary);
  EXPECT_EQ(*tokenizer.encode("Héllo WORLD!"), (Ids{2, 4, 5, 6, 7, 8, 3}));
  EXPECT_EQ(*tokenizer.encode("zzz", kBare), Ids{1});
  EXPECT_EQ(tokenizer.decode(Ids{2, 4, 5, 6, 7, 3}), "hello world");
}

// ---- What is refused ----------------------------------------------------------------------------------------------

TEST(GgufVocabulary, ErrorsNameWhatIsWrong) {
  const auto bpe = byte_pair_vocabulary("gpt-2", {});
  auto changed = bpe;
  changed.pre = "nonsense";
  EXPECT_EQ(refused(changed).kind, ErrorKind::kUnsupported);
  EXPECT_NE(refused(changed).message.find("'nonsense'"), std::string::npos);
  EXPECT_NE(refused(changed).message.find("llama-bpe"), std::string::npos);
  changed = bpe;
  changed.model = "t5";
  EXPECT_NE(refused(changed).message.find("'t5'"), std::string::npos);
  changed = bpe;
  changed.merges = {"a b"};
  EXPECT_NE(refused(changed).message.find("'ab'"), std::string::npos);
  changed.merges = {"zz b"};
  EXPECT_NE(refused(changed).message.find("'zz'"), std::string::npos);
  changed.merges = {"ab"};
  EXPECT_EQ(refused(changed).kind, ErrorKind::kCorruptFile);
  changed.merges = {"", " "};
  EXPECT_EQ(refused(changed).kind, ErrorKind::kCorruptFile);
  changed = bpe;
  changed.tokens[5] = changed.tokens[6];
  EXPECT_NE(refused(changed).message.find("tokens 5 and 6"), std::string::npos);
  changed = bpe;
  changed.tokens[5] = "\xff";
  EXPECT_NE(refused(changed).message.find("token 5"), std::string::npos);
  changed = bpe;
  changed.types.pop_back();
  EXPECT_EQ(refused(changed).field, "tokenizer.ggml.token_type");
  changed = bpe;
  changed.bos = 257;
  EXPECT_EQ(refused(changed).field, "tokenizer.ggml.bos_token_id");
  changed.bos = -1;
  EXPECT_EQ(refused(changed).kind, ErrorKind::kCorruptFile);
  changed = bpe;
  changed.tokens.clear();
  changed.types.clear();
  EXPECT_EQ(refused(changed).kind, ErrorKind::kCorruptFile);
  auto spm = sentencepiece_vocabulary({"a"});
  spm.scores.clear();
  EXPECT_EQ(refused(spm).field, "tokenizer.ggml.scores");
  EXPECT_EQ(refused(weights::TokenizerSource{}).kind, ErrorKind::kNotFound);
  auto holes = sentencepiece_vocabulary({"a", "", ""});  // empty entries are ids that never occur
  EXPECT_EQ(make(holes).size(), 262);
}

// ---- Long texts ---------------------------------------------------------------------------------------------------

// A quarter of a megabyte of the least favourable kinds takes time in proportion to its length: far below the ten
// seconds allowed here to a busy machine with sanitizers; a quadratic step would need many minutes.
TEST(LongTexts, TakeLinearTime) {
  const size_t n = 1 << 18;
  std::vector<std::string> texts = {std::string(n, 'a'),  std::string(n, ' '), std::string(n, '1'),
                                    std::string(n, '\n'), std::string(n, '<'), std::string(n, '!')};
  for (const std::string& unit :
       {std::string("\xcc\x81"), std::string("\xe4\xb8\xad"), std::string("<|end|"), std::string(" \n")}) {
    std::string text;
    while (text.size() < n) text += unit;
    texts.push_back(text);
  }
  auto spm = sentencepiece_vocabulary({"a", "aa", "aaaa", "aaaaaaaa", kMark, kMark + kMark});
  add_token(spm, "  ", PieceType::kUserDefined);
  std::vector<Tokenizer> tokenizers;
  tokenizers.push_back(make(spm));
  for (const char* kind : {"llama-bpe", "gpt-4o", "tiny_aya", "deepseek-v3", "smollm"})
    tokenizers.push_back(make(byte_pair_vocabulary(kind, {"a a", "aa aa", "1 1", "\xc4\xa0 \xc4\xa0"})));
  for (const Tokenizer& tokenizer : tokenizers) {
    for (const std::string& text : texts) {
      const auto start = std::chrono::steady_clock::now();
      const auto ids = tokenizer.encode(text);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      ASSERT_TRUE(ids.ok()) << ids.error().message;
      EXPECT_LT(taken.count(), 10.0) << text.substr(0, 8);
    }
  }
}

}  // namespace
}  // namespace vedette::text
