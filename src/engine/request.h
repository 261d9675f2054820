// Checks a request and turns it into a sequence.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/sequence.h"

namespace vedette::engine {

struct RequestLimits {
  int64_t vocab_size = 0;
  int64_t context_length = 0;
  std::span<const int32_t> eos;
  const text::Tokenizer* tokenizer = nullptr;  // null: events carry ids only, and stop strings are refused
};

// Errors (kInvalidRequest) name the field: an empty prompt, ids outside the vocabulary, a prompt that fills the
// context, parameters out of range, stop strings that are empty or no UTF-8.
Result<std::unique_ptr<Sequence>> make_sequence(GenerateRequest request, EventSink sink, const RequestLimits& limits);

}  // namespace vedette::engine
