// Repetition loops: the generated ids end in one pattern, again and again. Parameters and meaning as in vLLM.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/sampling_ranges.h"

namespace vedette::sampling {

struct LoopParams {
  int64_t max_pattern_size = 0;  // 0: off
  int64_t min_pattern_size = 0;  // 0: 1
  int64_t min_count = 0;         // times the pattern must stand there, the first included

  bool on() const { return max_pattern_size > 0; }
};

inline constexpr int64_t kMaxLoopPattern = 4096;
inline constexpr NumberRange kLoopNumber{0, kMaxLoopPattern};  // each of the three, as a request or a setting

// Errors: kInvalidRequest naming the field, its value and the range.
Status validate(const LoopParams& params);

// Owned by one sequence; engine thread; copyable. Nothing is allocated after construction, and a token costs one
// comparison per pattern size.
class LoopDetector {
 public:
  // Expects validated params.
  explicit LoopDetector(const LoopParams& params);

  // Takes a generated token. True where the ids end in a pattern of an allowed size, min_count times: the sequence
  // should end, with "stop" as its reason.
  bool push(int32_t token);

 private:
  int64_t min_size_, max_size_, min_count_;
  int64_t length_ = 0;            // tokens taken
  std::vector<int32_t> recent_;   // ring of the last max_size_ tokens
  std::vector<int64_t> periods_;  // by size - min_size_: how many last tokens equal the one `size` tokens before
};

}  // namespace vedette::sampling
