// A compiler over the 256 bytes and an end token, and texts fed to its grammars.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar.h"
#include "text/test_vocabulary.h"

namespace vedette::text {

inline constexpr int32_t kByteEnd = 256;  // "<|end|>"

inline const Tokenizer& byte_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::create(byte_pair_vocabulary("gpt-2", {})).value();
  return tokenizer;
}

inline const GrammarCompiler& byte_compiler() {
  static const std::unique_ptr<GrammarCompiler> compiler =
      GrammarCompiler::create(byte_tokenizer(), std::vector<int32_t>{kByteEnd}).value();
  return *compiler;
}

inline std::vector<uint32_t> mask_of(sampling::Constraint& constraint) {
  std::vector<uint32_t> words(9);
  const auto limited = constraint.allowed(words);
  EXPECT_TRUE(limited.ok()) << (limited.ok() ? "" : limited.error().message);
  if (limited.ok() && !*limited) words.assign(9, ~uint32_t{0});
  return words;
}

inline bool allows(sampling::Constraint& constraint, int32_t token) {
  return (mask_of(constraint)[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

// Bytes accepted before the first that is not allowed.
inline size_t feed(sampling::Constraint& constraint, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto token = static_cast<int32_t>(static_cast<unsigned char>(text[i]));
    if (constraint.complete() || !allows(constraint, token)) return i;
    EXPECT_TRUE(constraint.accept(token).ok());
  }
  return text.size();
}

inline bool may_end(sampling::Constraint& constraint) {
  return constraint.complete() || allows(constraint, kByteEnd);
}

inline std::unique_ptr<sampling::Constraint> compiled(GrammarKind kind, std::string text) {
  auto constraint = byte_compiler().compile({kind, std::move(text)});
  EXPECT_TRUE(constraint.ok()) << (constraint.ok() ? "" : constraint.error().message);
  return constraint.ok() ? std::move(*constraint) : nullptr;
}

// Whether the grammar takes the whole text and may end after it.
inline bool matches(GrammarKind kind, const std::string& grammar, std::string_view text) {
  const auto constraint = compiled(kind, grammar);
  return constraint != nullptr && feed(*constraint, text) == text.size() && may_end(*constraint);
}

inline std::string error_of(GrammarKind kind, std::string text) {
  const auto constraint = byte_compiler().compile({kind, std::move(text)});
  if (constraint.ok()) return "";
  EXPECT_EQ(constraint.error().kind, ErrorKind::kInvalidRequest) << constraint.error().message;
  EXPECT_EQ(constraint.error().message.find('\n'), std::string::npos);
  return constraint.error().message;
}

}  // namespace vedette::text
