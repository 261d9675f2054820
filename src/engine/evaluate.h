// Logits of a given token run, without an engine thread: perplexity, KL, comparison with references.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "models/decoder.h"

namespace vedette::engine {

// logits [vocab_size] of row (= position) `row`, valid during the call. An error stops the evaluation.
using LogitsCallback = std::function<Status(int64_t row, std::span<const float> logits)>;

// Runs ids as one sequence from position 0 in steps of at most `chunk` rows (lowered to what the decoder was loaded
// for) and calls back for every row from first_row on, in order. Uses the decoder's K/V from its start: no other
// user of it at the same time. Errors: kInvalidRequest (ids outside the vocabulary, an empty run), kOutOfBudget
// (longer than the K/V pool). health (EngineConfig's) is asked after every step, before its logits are handed out.
Status evaluate(models::Decoder& decoder, std::span<const int32_t> ids, int chunk, const LogitsCallback& callback,
                int64_t first_row = 0, const std::function<Status()>& health = {});

}  // namespace vedette::engine
