// vocabulary.gguf: the tokenizer of a GGUF source beside converted weights, in GGUF's own format (metadata, no
// tensors).
#pragma once

#include <string>

#include "base/result.h"
#include "weights/checkpoint.h"

namespace vedette::weights {

inline constexpr const char* kVocabularyFile = "vocabulary.gguf";

std::string vocabulary_bytes(const GgufVocabulary& vocabulary);
Result<TokenizerSource> read_vocabulary_file(const std::string& path);

}  // namespace vedette::weights
