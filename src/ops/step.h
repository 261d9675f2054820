// One step: a flat list of rows (tokens) of any number of sequences, and where their K/V lies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/types.h"

namespace vedette::ops {

enum class RowSource : uint8_t {
  kToken,           // value = token id
  kEmbedding,       // value = row of an embedding buffer (images, audio)
  kPreviousOutput,  // value = output slot of the previous step (device-resident ids)
};

struct Row {
  RowSource source = RowSource::kToken;
  int32_t value = 0;
  int32_t sequence = 0;             // index into Step::sequences
  int32_t position[3] = {0, 0, 0};  // absolute; axes 1 and 2 only for multi-axis rope
  int32_t span = -1;                // rows of one span see each other both ways; -1: none
  int32_t adapter = -1;             // LoRA adapter; -1: none
  bool wants_logits = false;
  bool wants_taps = false;  // hidden states for a drafter
};

// Rows of a sequence are contiguous in the step and their positions consecutive.
struct StepSequence {
  int32_t first_row = 0;
  int32_t n_rows = 0;
  // Per K/V group: block_tables[group][p / kBlockTokens] is the block of position p; -1 where a sliding
  // group has freed it. Covers every position up to the last row's.
  std::vector<std::vector<int32_t>> block_tables;
};

// Owned by the engine thread, re-used from step to step so that nothing is allocated per token.
struct Step {
  std::vector<Row> rows;
  std::vector<StepSequence> sequences;
};

}  // namespace vedette::ops
