// Small vocabularies for tests.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "text/sentencepiece.h"
#include "weights/checkpoint.h"

namespace vedette::text {

inline void add_token(weights::GgufVocabulary& vocabulary, std::string text, PieceType type, float score = 0) {
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.types.push_back(static_cast<int32_t>(type));
  vocabulary.scores.push_back(score);
}

// <unk> 0, <s> 1, </s> 2, then <0x00> .. <0xFF> at 3 .. 258, then `pieces` with falling scores.
inline weights::GgufVocabulary sentencepiece_vocabulary(const std::vector<std::string>& pieces) {
  weights::GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  add_token(vocabulary, "<unk>", PieceType::kUnknown);
  add_token(vocabulary, "<s>", PieceType::kControl);
  add_token(vocabulary, "</s>", PieceType::kControl);
  for (int byte = 0; byte < 256; ++byte) add_token(vocabulary, fmt::format("<0x{:02X}>", byte), PieceType::kByte);
  float score = 0;
  for (const std::string& piece : pieces) add_token(vocabulary, piece, PieceType::kNormal, score -= 1);
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  vocabulary.unknown = 0;
  return vocabulary;
}

// UTF-8 of a code point below U+0800.
inline std::string small_utf8(int code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// The character that stands for a byte in byte-level vocabularies, by the definition: printable Latin-1 is itself, the
// rest is U+0100 and up in byte order.
inline std::string byte_letter(int byte) {
  const auto printable = [](int b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae; };
  if (printable(byte)) return small_utf8(byte);
  int next = 0x100;
  for (int b = 0; b < byte; ++b) next += printable(b) ? 0 : 1;
  return small_utf8(next);
}

// All bytes at 0 .. 255, <|end|> at 256 (control), then one token per merge.
inline weights::GgufVocabulary byte_pair_vocabulary(const std::string& pre, const std::vector<std::string>& merges) {
  weights::GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = pre;
  for (int byte = 0; byte < 256; ++byte) add_token(vocabulary, byte_letter(byte), PieceType::kNormal);
  add_token(vocabulary, "<|end|>", PieceType::kControl);
  for (const std::string& merge : merges) {
    std::string joined = merge;
    joined.erase(joined.find(' ', 1), 1);
    add_token(vocabulary, joined, PieceType::kNormal);
  }
  vocabulary.merges = merges;
  vocabulary.scores.clear();
  vocabulary.bos = 256;
  vocabulary.eos = 256;
  return vocabulary;
}

// The same vocabulary, without merges, as a tokenizer.json.
inline weights::HfTokenizer byte_level_json() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab.set(byte_letter(byte), byte);
  vocab.set("<|end|>", 256);
  const std::string text =
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":256,"content":"<|end|>",)"
      R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],)"
      R"("normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
      R"("trim_offsets":true,"use_regex":true},"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)"
      R"("model":{"type":"BPE","vocab":)" +
      vocab.dump() + R"(,"merges":[]}})";
  return {text, nullptr, nullptr};
}

}  // namespace vedette::text
