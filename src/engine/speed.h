// How long a loaded model takes: prompts, decoding at a depth and of several sequences at once, and steps of a few
// rows.
//
// Prompts and decoding run through the engine's Runner (scheduler, K/V blocks, greedy sampling), without its thread,
// its prefix cache and a tokenizer. Ids are random, end tokens are not heeded.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/decoder.h"

namespace vedette::engine {

// Uses the decoder's K/V from its start: no other user of it at the same time. One thread.
class SpeedMeter {
 public:
  // Of what the decoder was loaded with (EngineConfig): rows of a prefill chunk, and what is asked after every step.
  SpeedMeter(models::Decoder& decoder, int prefill_chunk, uint64_t seed, std::function<Status()> health = {});

  // Seconds for a prompt of so many tokens, up to the logits of its last.
  Result<double> prefill(int64_t tokens);

  // Seconds for `tokens` tokens of each of `sequences` sequences, one row of each in every step, after `depth` tokens
  // that are not timed (at least one, and each sequence's first drawn token). kOutOfBudget: the K/V pool does not hold
  // them together.
  Result<double> decode(int64_t tokens, int64_t depth, int sequences);

  // Seconds of one step with rows[i] rows of one sequence at `depth`, all with logits, as a verification of drafts
  // has; [i][repetition], each the mean of kStepsPerSample. Repetitions of the different counts take turns.
  Result<std::vector<std::vector<double>>> rows(std::span<const int64_t> rows, int64_t depth, int repetitions);
  static constexpr int kStepsPerSample = 4;

  // Tokens of context that decode() needs.
  static int64_t decode_context(int64_t tokens, int64_t depth) { return (depth > 1 ? depth : 1) + tokens + 1; }

 private:
  std::vector<int32_t> random_ids(int64_t count);

  models::Decoder& decoder_;
  int prefill_chunk_;
  uint64_t state_;
  std::function<Status()> health_;
};

}  // namespace vedette::engine
