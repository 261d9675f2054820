// --memory-limit as a bound of what is loaded.
#pragma once

#include "base/result.h"
#include "cli/settings.h"
#include "engine/load.h"
#include "weights/checkpoint.h"

namespace vedette::cli {

// What the limit leaves for K/V goes to load.kv_budget_bytes; nothing happens without a limit or with `force`.
// Errors (kOutOfBudget): the weights alone go beyond it.
Status apply_memory_limit(const MemorySettings& memory, bool force, const weights::Checkpoint& checkpoint,
                          engine::LoadOptions& load);

}  // namespace vedette::cli
