#include "cli/memory_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/memory.h"
#include "models/decoder.h"

namespace vedette::cli {
namespace {

std::string describe(const std::vector<models::KvGroupPlan>& groups, ops::DType type) {
  std::string out(ops::to_string(type));
  for (const models::KvGroupPlan& group : groups) {
    out +=
        fmt::format("; {} layers {} of {} heads x {}", group.n_layers,
                    group.window > 0 ? fmt::format("within a window of {} tokens", group.window) : "over the context",
                    group.n_kv_heads, group.head_dim);
  }
  return out;
}

void add_kv(const weights::Checkpoint& checkpoint, const models::DecoderSpec& spec, const MemoryQuery& query,
            MemoryReport& report) {
  const std::vector<models::KvGroupPlan> groups = models::plan_kv_groups(spec);
  const engine::LoadOptions& load = query.load;
  const auto compute = engine::choose_compute(load.compute, engine::parameter_count(checkpoint));
  models::DecoderConfig config = engine::decoder_config(load, compute, spec);
  report.kv_type = config.kv_type;
  report.tokens = spec.context_length > 0 ? std::min(query.tokens, spec.context_length) : query.tokens;
  int64_t per_token = 0;
  for (const models::KvGroupPlan& group : groups) per_token += group.bytes_per_token(config.kv_type);
  report.kv_bytes_per_token = per_token;
  config.kv_blocks = engine::blocks_for(groups, report.tokens, load.max_sequences, load.prefill_chunk);
  report.kv_bytes = engine::kv_bytes(groups, config.kv_blocks, config.kv_type);
  report.kv_detail = describe(groups, config.kv_type);
  report.activation_bytes = models::activation_bytes(spec, config);
}

}  // namespace

std::optional<bool> MemoryReport::fits() const {
  if (!total_bytes || !budget_bytes) return std::nullopt;
  return *total_bytes <= *budget_bytes;
}

MemoryReport report_memory(const weights::Checkpoint& checkpoint, const models::DecoderSpec* spec,
                           const MemoryQuery& query) {
  MemoryReport report;
  report.weight_bytes = checkpoint.tensor_bytes;
  report.tokens = query.tokens;
  report.program_bytes = engine::program_bytes(checkpoint);
  report.headroom = query.memory.headroom;
  if (query.memory.limit_bytes)
    report.budget_bytes = query.memory.limit_bytes;
  else if (auto available = engine::available_memory(); available.ok())
    report.budget_bytes = *available;
  if (spec == nullptr) return report;
  add_kv(checkpoint, *spec, query, report);
  const double held = static_cast<double>(report.weight_bytes + *report.kv_bytes);
  report.headroom_bytes = static_cast<int64_t>(held * (report.headroom - 1));
  report.total_bytes =
      report.weight_bytes + *report.kv_bytes + *report.headroom_bytes + *report.activation_bytes + report.program_bytes;
  return report;
}

Status check_fits(const MemoryReport& report) {
  if (report.fits().value_or(true)) return ok_status();
  return out_of_budget("--estimate-memory",
                       "the model needs {} with a context of {} tokens, {} are available; lower --ctx-size or "
                       "--max-tokens, take a smaller model, or pass --force",
                       engine::format_bytes(*report.total_bytes), report.tokens,
                       engine::format_bytes(*report.budget_bytes));
}

}  // namespace vedette::cli
