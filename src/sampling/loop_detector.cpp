#include "sampling/loop_detector.h"

#include <algorithm>

#include "base/error.h"

namespace vedette::sampling {

Status validate(const LoopParams& params) {
  if (params.max_pattern_size < 0 || params.max_pattern_size > kMaxLoopPattern)
    return invalid_request("max_pattern_size", "max_pattern_size is {}, must be an integer from 0 to {}",
                           params.max_pattern_size, kMaxLoopPattern);
  if (params.min_pattern_size < 0 || (params.on() && params.min_pattern_size > params.max_pattern_size))
    return invalid_request("min_pattern_size",
                           "min_pattern_size is {}, must be an integer from 0 to max_pattern_size ({})",
                           params.min_pattern_size, params.max_pattern_size);
  if (params.min_count < 0 || (params.on() && params.min_count < 2))
    return invalid_request("min_count", "min_count is {}, must be an integer of at least {}", params.min_count,
                           params.on() ? 2 : 0);
  return ok_status();
}

LoopDetector::LoopDetector(const LoopParams& params)
    : min_size_(std::max<int64_t>(params.min_pattern_size, 1)),
      max_size_(params.max_pattern_size),
      min_count_(params.min_count),
      recent_(static_cast<size_t>(std::max<int64_t>(max_size_, 0))),
      periods_(static_cast<size_t>(std::max<int64_t>(max_size_ - min_size_ + 1, 0)), 0) {}

// The last size * min_count tokens are one pattern repeated just where the last size * (min_count - 1) tokens each
// equal the token `size` before.
bool LoopDetector::push(int32_t token) {
  bool loop = false;
  for (int64_t size = min_size_; size <= max_size_; ++size) {
    int64_t& period = periods_[static_cast<size_t>(size - min_size_)];
    const bool same = length_ >= size && recent_[static_cast<size_t>((length_ - size) % max_size_)] == token;
    period = same ? period + 1 : 0;
    loop = loop || period / size >= min_count_ - 1;  // a division: the product could overflow
  }
  if (max_size_ > 0) recent_[static_cast<size_t>(length_ % max_size_)] = token;
  ++length_;
  return loop;
}

}  // namespace vedette::sampling
