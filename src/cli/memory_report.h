// What a model will take, before it is loaded: `inspect` and --estimate-memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/settings.h"
#include "engine/load.h"
#include "models/spec.h"
#include "ops/types.h"
#include "weights/checkpoint.h"

namespace vedette::cli {

struct MemoryQuery {
  int64_t tokens = 8192;     // context per sequence; lowered to the model's own
  engine::LoadOptions load;  // as the model would be loaded
  MemorySettings memory;
};

// What cannot be told is absent, never guessed.
struct MemoryReport {
  int64_t weight_bytes = 0;  // exact, as stored
  int64_t tokens = 0;
  std::optional<ops::DType> kv_type;
  std::optional<int64_t> kv_bytes_per_token;  // of a token inside every window
  std::optional<int64_t> kv_bytes;
  std::string kv_detail;  // one line about layers and windows
  std::optional<int64_t> activation_bytes;
  int64_t program_bytes = 0;  // all else: code, scratch, tokenizer; near the truth
  double headroom = 1;
  std::optional<int64_t> headroom_bytes;
  std::optional<int64_t> total_bytes;
  std::optional<int64_t> budget_bytes;
  std::optional<bool> fits() const;
};

// spec is absent for a family this build cannot run: then only the weights are known.
MemoryReport report_memory(const weights::Checkpoint& checkpoint, const models::DecoderSpec* spec,
                           const MemoryQuery& query);

// kOutOfBudget with both numbers and what to do, if the report says that it does not fit.
Status check_fits(const MemoryReport& report);

}  // namespace vedette::cli
