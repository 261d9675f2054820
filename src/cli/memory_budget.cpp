#include "cli/memory_budget.h"

#include "base/error.h"
#include "engine/memory.h"

namespace vedette::cli {

Status apply_memory_limit(const MemorySettings& memory, bool force, const weights::Checkpoint& checkpoint,
                          engine::LoadOptions& load) {
  if (!memory.limit_bytes || force) return ok_status();
  const double limit = static_cast<double>(*memory.limit_bytes);
  const int64_t left = static_cast<int64_t>(limit / memory.headroom) - checkpoint.tensor_bytes;
  if (left <= 0) {
    const double total = static_cast<double>(checkpoint.tensor_bytes) * memory.headroom;
    return out_of_budget("memory_limit",
                         "the weights take {} with a headroom of {}, --memory-limit allows {}; raise it or take a "
                         "smaller model",
                         engine::format_bytes(static_cast<int64_t>(total)), memory.headroom,
                         engine::format_bytes(*memory.limit_bytes));
  }
  load.kv_budget_bytes = left;
  return ok_status();
}

}  // namespace vedette::cli
