// How fast this machine reads memory: the ceiling of decoding, which reads every weight once per step.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace vedette::engine {

// Bytes per second that so many threads read together from a buffer far larger than any cache, the best of a few
// passes. Takes some tenths of a second. kOutOfBudget: no memory for the buffer.
Result<double> measure_read_bandwidth(int threads);
inline constexpr int64_t kReadBufferBytes = int64_t{512} << 20;

}  // namespace vedette::engine
