// --memory-limit as a bound of what is loaded, and --estimate-memory before it is.
#pragma once

#include "base/result.h"
#include "cli/memory_report.h"
#include "cli/settings.h"
#include "engine/load.h"
#include "weights/checkpoint.h"

namespace vedette::cli {

// What the limit leaves for K/V goes to load.kv_budget_bytes; nothing happens without a limit or with `force`.
// Errors (kOutOfBudget): the weights alone go beyond it.
Status apply_memory_limit(const MemorySettings& memory, bool force, const weights::Checkpoint& checkpoint,
                          engine::LoadOptions& load);

// Compares what the query needs with the budget and tells it unless `quiet`. query.tokens 0: the context that is
// loaded, or the model's own. Errors (kOutOfBudget) where it does not fit; with `force` a notice instead.
Status preflight_memory(const weights::Checkpoint& checkpoint, MemoryQuery query, bool force, bool quiet);

}  // namespace vedette::cli
