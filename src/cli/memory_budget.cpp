#include "cli/memory_budget.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/terminal.h"
#include "engine/memory.h"
#include "models/registry.h"

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

Status preflight_memory(const weights::Checkpoint& checkpoint, MemoryQuery query, bool force, bool quiet) {
  VEDETTE_ASSIGN_OR_RETURN(const models::DecoderSpec spec, models::build_spec(checkpoint));
  if (query.tokens == 0) query.tokens = query.load.context_length > 0 ? query.load.context_length : spec.context_length;
  const MemoryReport report = report_memory(checkpoint, &spec, query);
  Status fits = check_fits(report);
  if (!fits.ok() && !force) return fits;
  if (!fits.ok()) print_notice(fits.error().message + "; going on, as --force asks");
  if (quiet) return ok_status();
  print_notice(
      fmt::format("memory: weights {}, K/V {} for {} tokens, activations {}, program {}, in all {} of {} available",
                  engine::format_bytes(report.weight_bytes), engine::format_bytes(report.kv_bytes.value_or(0)),
                  report.tokens, engine::format_bytes(report.activation_bytes.value_or(0)),
                  engine::format_bytes(report.program_bytes), engine::format_bytes(report.total_bytes.value_or(0)),
                  report.budget_bytes ? engine::format_bytes(*report.budget_bytes) : "an unknown amount"));
  return ok_status();
}

}  // namespace vedette::cli
