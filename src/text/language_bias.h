// Bias per language: what is added to the logits of the tokens written in a language's scripts. A script stands for all
// languages that use it, so a bias of "en" is one of "fr" too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace vedette::text {

struct LanguageBias {
  using Entries = std::vector<std::pair<std::string, float>>;
  Entries entries = {};  // language, bias; a token that belongs to several counts to the first
  // Which tokens belong to a language. false: those whose letters are all of its scripts; true: those with any.
  bool strict = false;
  bool special = false;         // control tokens too; these and the next two belong to every language
  bool numeric = false;         // tokens of numbers without letters too
  bool punctuation = false;     // tokens of punctuation and symbols alone too
  bool byte_fragments = false;  // tokens that hold parts of characters too, by what their first bytes can begin

  bool operator==(const LanguageBias&) const = default;
};

// Errors (kInvalidRequest) say what is wrong, not where: callers put the name of their field or option before it.

// Puts an entry in its place: a language that is there already gets the new bias. Errors: a language of which no
// script is known, a bias that is neither finite nor -infinity.
Status set_language_bias(std::string_view language, double bias, LanguageBias::Entries& entries);
// "ja=-inf,zh=-10,ko=+5.0".
Result<LanguageBias::Entries> parse_language_bias(std::string_view text);
// A bias as written: a number, or -inf.
Result<double> parse_bias(std::string_view text);

// The scripts of every token of a vocabulary. Immutable; any thread.
class TokenScripts {
 public:
  explicit TokenScripts(const Tokenizer& tokenizer);
  // What is added to each logit, by token id.
  std::vector<float> table(const LanguageBias& bias) const;

 private:
  struct Token {
    uint64_t scripts = 0;  // bits of Script: of its letters, and of what its fragments can begin
    bool special = false, fragment = false, number = false, punctuation = false;
  };
  static Token classify(std::string_view bytes);
  static bool belongs(const Token& token, uint64_t scripts, const LanguageBias& bias);
  std::vector<Token> tokens_;
};

}  // namespace vedette::text
