// Builds a Step from sequences' tokens and block tables. Re-uses its memory from step to step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "ops/step.h"

namespace vedette::engine {

// Owned by whoever runs the decoder; engine thread.
class StepBuilder {
 public:
  void clear();
  // Rows for tokens ids[0..] at positions first_position.. of one sequence, whose tables cover them. Rows at positions
  // from first_logits on want logits.
  void append(const cache::SequenceBlocks& blocks, std::span<const int32_t> ids, int64_t first_position,
              int64_t first_logits);
  const ops::Step& step() const { return step_; }

 private:
  ops::Step step_;
  std::vector<ops::StepSequence> spare_;  // cleared sequences, kept for their tables' memory
};

}  // namespace vedette::engine
