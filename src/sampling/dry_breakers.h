// The token sequences in which a vocabulary may write DRY's breaker texts.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vedette::sampling {

// What is asked of a tokenizer; called only while dry_breakers runs.
struct BreakerVocabulary {
  int64_t size = 0;
  std::function<std::string(int32_t id)> bytes;                         // of a token in running text
  std::function<std::vector<int32_t>(std::string_view text)> tokenize;  // without special tokens
};

inline constexpr size_t kMaxBreakers = 64;      // texts of one request
inline constexpr size_t kMaxBreakerBytes = 40;  // of a text; the rest is left out
inline constexpr size_t kMaxBreakerTail = 20;   // tokens after the first

// For SamplingParams::dry_breakers, sorted and without duplicates: each token that holds a text whole; and each token
// that ends in the beginning of a text, followed by the tokens of the text's rest. Empty texts are skipped.
// Errors: kInvalidRequest for more texts than kMaxBreakers.
Result<std::vector<std::vector<int32_t>>> dry_breakers(const BreakerVocabulary& vocabulary,
                                                       std::span<const std::string> texts);

}  // namespace vedette::sampling
