#include "sampling/dry_breakers.h"

#include <algorithm>

#include "base/error.h"

namespace vedette::sampling {
namespace {

// One breaker text; the tokens of its rests are found at most once each.
class Breaker {
 public:
  Breaker(std::string_view text, const BreakerVocabulary& vocabulary)
      : text_(text), vocabulary_(vocabulary), tails_(text.size()) {}

  void add(int32_t id, std::string_view word, std::vector<std::vector<int32_t>>& sequences) {
    if (word.find(text_) != std::string_view::npos) {
      sequences.push_back({id});
      return;
    }
    // Ends of the word that the text begins with.
    for (size_t length = std::min(word.size(), text_.size() - 1); length >= 1; --length) {
      if (word.substr(word.size() - length) != text_.substr(0, length)) continue;
      std::vector<int32_t> sequence = {id};
      const std::vector<int32_t>& rest = tail(length);
      sequence.insert(sequence.end(), rest.begin(), rest.end());
      sequences.push_back(std::move(sequence));
    }
  }

 private:
  const std::vector<int32_t>& tail(size_t begin) {
    std::vector<int32_t>& tokens = tails_[begin];
    if (tokens.empty()) {
      tokens = vocabulary_.tokenize(text_.substr(begin));
      tokens.resize(std::min(tokens.size(), kMaxBreakerTail));
    }
    return tokens;
  }

  std::string_view text_;
  const BreakerVocabulary& vocabulary_;
  std::vector<std::vector<int32_t>> tails_;  // by where they begin
};

}  // namespace

Result<std::vector<std::vector<int32_t>>> dry_breakers(const BreakerVocabulary& vocabulary,
                                                       std::span<const std::string> texts) {
  if (texts.size() > kMaxBreakers)
    return invalid_request("dry_sequence_breakers", "dry_sequence_breakers has {} texts, must have at most {}",
                           texts.size(), kMaxBreakers);
  std::vector<Breaker> breakers;
  for (const std::string& text : texts)
    if (!text.empty()) breakers.emplace_back(std::string_view(text).substr(0, kMaxBreakerBytes), vocabulary);
  std::vector<std::vector<int32_t>> sequences;
  if (breakers.empty()) return sequences;
  for (int32_t id = 0; id < vocabulary.size; ++id) {
    const std::string word = vocabulary.bytes(id);
    for (Breaker& breaker : breakers) breaker.add(id, word, sequences);
  }
  std::sort(sequences.begin(), sequences.end());
  sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
  return sequences;
}

}  // namespace vedette::sampling
