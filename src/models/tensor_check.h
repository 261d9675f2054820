// A checkpoint's tensors against what a spec reads, before anything is loaded.
#pragma once

#include "base/result.h"
#include "models/spec.h"
#include "weights/checkpoint.h"

namespace vedette::models {

// Errors (kCorruptFile): missing, wrongly shaped and surplus tensors by name (up to eight of each, then a count).
Status check_tensors(const weights::Checkpoint& checkpoint, const DecoderSpec& spec);

}  // namespace vedette::models
