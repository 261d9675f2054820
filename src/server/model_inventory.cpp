#include "server/model_inventory.h"

#include <algorithm>
#include <set>

#include "engine/load.h"
#include "engine/memory.h"
#include "models/decoder.h"
#include "models/registry.h"
#include "weights/checkpoint.h"

namespace vedette::server {
namespace {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

void estimate(const weights::Checkpoint& checkpoint, const models::DecoderSpec& spec, InventoryRow& row) {
  const engine::LoadOptions load;
  const std::vector<models::KvGroupPlan> groups = models::plan_kv_groups(spec);
  const auto compute = engine::choose_compute(load.compute, engine::parameter_count(checkpoint));
  models::DecoderConfig config = engine::decoder_config(load, compute, spec);
  const int64_t context =
      spec.context_length > 0 ? std::min(kInventoryContext, spec.context_length) : kInventoryContext;
  config.kv_blocks = engine::blocks_for(groups, context, 1, load.prefill_chunk);
  const int64_t kv = engine::kv_bytes(groups, config.kv_blocks, config.kv_type);
  row.need_bytes = engine::estimate_memory(checkpoint.tensor_bytes, kv, models::activation_bytes(spec, config), 0,
                                           engine::program_bytes(checkpoint))
                       .total_bytes;
}

InventoryRow look_at(const hub::StoreEntry& entry) {
  InventoryRow row;
  row.entry = entry;
  const auto resolved = hub::resolve_model(entry.path, {});
  if (!resolved.ok()) {
    row.problem = resolved.error().message;
    return row;
  }
  const auto checkpoint = weights::open_checkpoint(resolved->path);
  if (!checkpoint.ok()) {
    row.problem = checkpoint.error().message;
    return row;
  }
  row.format = checkpoint->format;
  row.weight_bytes = checkpoint->tensor_bytes;
  row.parameters = engine::parameter_count(*checkpoint);
  if (const Json* type = checkpoint->config.find("model_type"); type != nullptr && type->is_string())
    row.model_type = type->as_string();
  const auto spec = models::build_spec(*checkpoint);
  if (!spec.ok()) {
    row.problem = spec.error().message;
    return row;
  }
  row.family = spec->family;
  row.context_length = spec->context_length;
  estimate(*checkpoint, *spec, row);
  return row;
}

}  // namespace

InventoryRow Inventory::row_of(const hub::StoreEntry& entry) {
  {
    const std::scoped_lock lock(mutex_);
    const auto known = known_.find(entry.path);
    if (known != known_.end() && known->second.entry.size_bytes == entry.size_bytes &&
        known->second.entry.modified == entry.modified) {
      InventoryRow row = known->second;
      row.entry = entry;
      return row;
    }
  }
  return look_at(entry);
}

std::vector<InventoryRow> Inventory::take(const std::vector<hub::ModelFolder>& folders,
                                          const std::optional<int64_t>& available) {
  std::vector<InventoryRow> rows;
  std::map<std::string, InventoryRow> known;
  std::set<std::string> seen;
  for (const hub::ModelFolder& folder : folders) {
    for (const hub::StoreEntry& entry : folder.models) {
      if (!seen.insert(entry.repo_id).second) continue;
      InventoryRow& row = rows.emplace_back(row_of(entry));
      if (row.problem.empty()) known.emplace(entry.path, row);
      row.source = folder.kind;
      if (available && row.need_bytes) row.fits = *row.need_bytes <= *available;
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    known_ = std::move(known);
  }
  std::ranges::sort(rows, {}, [](const InventoryRow& row) { return row.entry.repo_id; });
  return rows;
}

Json to_json(const InventoryRow& row) {
  Json out = Json::object();
  out.set("id", row.entry.repo_id);
  out.set("source", row.source);
  out.set("path", row.entry.path);
  out.set("size_bytes", row.entry.size_bytes);
  out.set("modified", or_null(row.entry.modified));
  out.set("format", text_or_null(row.format));
  out.set("model_type", text_or_null(row.model_type));
  out.set("family", text_or_null(row.family));
  out.set("parameters", row.parameters > 0 ? Json(row.parameters) : Json());
  out.set("weight_bytes", row.weight_bytes > 0 ? Json(row.weight_bytes) : Json());
  out.set("context_length", row.context_length > 0 ? Json(row.context_length) : Json());
  out.set("need_bytes", or_null(row.need_bytes));
  out.set("fits", or_null(row.fits));
  out.set("problem", text_or_null(row.problem));
  return out;
}

}  // namespace vedette::server
