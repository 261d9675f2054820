// What may come next: grammars, forced calls, budgets of reasoning. The chain asks it before each draw.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"

namespace vedette::sampling {

// State of one sequence; engine thread. Copyable by clone(), because drafted rows are checked in order and may be
// rolled back: going back means going back to a clone.
class Constraint {
 public:
  virtual ~Constraint() = default;

  // The tokens allowed at the next position: bit id % 32 of word id / 32; the span holds (vocab_size + 31) / 32 words.
  // False where every token is allowed (the words are then undefined). An empty set is the caller's error to report.
  virtual Result<bool> allowed(std::span<uint32_t> words) = 0;

  // The token drawn. Errors: kInternal where it was not allowed.
  virtual Status accept(int32_t token) = 0;

  // Nothing may follow: the sequence ends as if an end token had been drawn.
  virtual bool complete() const = 0;

  virtual std::unique_ptr<Constraint> clone() const = 0;
};

}  // namespace vedette::sampling
