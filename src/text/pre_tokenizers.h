// The pre-tokenizer kinds a GGUF file can name in `tokenizer.ggml.pre`: how text is cut before byte-pair merging.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/rust_bridge.h"

namespace vedette::text {

struct SplitStep {
  VtSplitKind kind = kVtSplitPattern;
  std::string_view pattern;  // Oniguruma syntax, as in the models' own tokenizer.json
};

struct PreTokenizer {
  std::span<const SplitStep> steps;
  bool byte_level = true;       // GPT-2 byte alphabet; else raw UTF-8, spaces written as U+2581, <0xNN> fallback
  bool ignore_merges = false;   // a piece that is a token is taken whole
  bool whole_newlines = false;  // a run of newlines that is a token is taken whole
  bool add_bos = false;         // where the file does not say
  bool always_bos = false;      // whatever the file says
  bool default_bos = true;      // whether BOS is a token if the file names none
};

// nullptr for a kind we do not know.
const PreTokenizer* find_pre_tokenizer(std::string_view kind);
// All known kinds, sorted, separated by ", ".
std::string pre_tokenizer_kinds();

}  // namespace vedette::text
