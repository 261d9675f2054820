// Incremental detokenizing: complete UTF-8 only, nothing taken back.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace vedette::text {

// One per sequence; copyable state. Concatenated outputs of push and finish equal decode() of the ids, with
// each ill-formed subsequence replaced by U+FFFD.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool special = false) : tokenizer_(&tokenizer), special_(special) {}
  // Text that this token completes; bytes of an unfinished character are kept.
  std::string push(int32_t id);
  // What is still held (an unfinished character becomes U+FFFD).
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  bool at_start_ = true;
  std::string pending_;
};

}  // namespace vedette::text
