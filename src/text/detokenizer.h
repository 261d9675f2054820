// Incremental detokenizing: complete UTF-8 only, nothing taken back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace vedette::text {

// One per sequence; copyable state. Concatenated outputs of push and finish equal decode() of the ids, with
// each ill-formed subsequence replaced by U+FFFD.
class Detokenizer {
 public:
  // special: every special token gives its text; visible: those that do in any case.
  explicit Detokenizer(const Tokenizer& tokenizer, bool special = false, std::vector<int32_t> visible = {});
  // Text that this token completes; bytes of an unfinished character are kept. What is returned here and below is valid
  // until the next call.
  std::string_view push(int32_t id);
  // What is still held (an unfinished character becomes U+FFFD).
  std::string_view finish();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  std::vector<int32_t> visible_;  // sorted
  bool at_start_ = true;
  std::string pending_;
  std::string text_;  // returned last
};

}  // namespace vedette::text
