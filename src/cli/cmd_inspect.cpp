// `inspect`: what a model is and the memory it needs, without loading it.
#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/json.h"
#include "cli/context.h"
#include "cli/fetch_model.h"
#include "cli/memory_report.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "engine/load.h"
#include "engine/memory.h"
#include "hub/model_store.h"
#include "models/registry.h"
#include "weights/checkpoint.h"

namespace vedette::cli {
namespace {

struct Inspection {
  hub::ResolvedModel model;
  weights::Checkpoint checkpoint;
  std::optional<models::DecoderSpec> spec;
  std::string unsupported;  // why there is no spec
  MemoryQuery query;
  std::string quant_label;
  MemoryReport memory;
};

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Bytes of the checkpoint by storage scheme, e.g. "Q4_1".
std::map<std::string, int64_t> bytes_by_scheme(const weights::Checkpoint& checkpoint) {
  std::map<std::string, int64_t> bytes;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    std::string scheme = ops::to_string(tensor.matrix.scheme);
    if (tensor.matrix.scheme == ops::Scheme::kMlxAffine)
      scheme = fmt::format("{} {}-bit group {}", scheme, tensor.matrix.bits, tensor.matrix.group);
    bytes[scheme] +=
        static_cast<int64_t>(tensor.matrix.data.size() + tensor.matrix.scales.size() + tensor.matrix.biases.size());
  }
  return bytes;
}

Json model_type(const weights::Checkpoint& checkpoint) {
  const Json* type = checkpoint.config.find("model_type");
  return type != nullptr && type->is_string() ? *type : Json();
}

Json inputs_json(const Inspection& inspection) {
  Json inputs = Json::object();
  inputs.set("max_tokens", inspection.query.tokens);
  inputs.set("batch", inspection.query.load.max_sequences);
  inputs.set("quant", inspection.quant_label);
  const auto type = inspection.memory.kv_type;
  inputs.set("cache_type_k", type ? Json(ops::to_string(*type)) : Json());
  inputs.set("cache_type_v", type ? Json(ops::to_string(*type)) : Json());
  return inputs;
}

Json to_json(const Inspection& inspection) {
  const MemoryReport& memory = inspection.memory;
  const auto& spec = inspection.spec;
  Json schemes = Json::object();
  for (const auto& [scheme, bytes] : bytes_by_scheme(inspection.checkpoint)) schemes.set(scheme, bytes);
  Json out = Json::object();
  out.set("vedette_version", kVersion);
  out.set("model", inspection.model.name);
  out.set("path", inspection.model.path);
  out.set("format", inspection.checkpoint.format);
  out.set("model_type", model_type(inspection.checkpoint));
  out.set("family", spec ? Json(spec->family) : Json());
  out.set("unsupported", inspection.unsupported.empty() ? Json() : Json(inspection.unsupported));
  out.set("parameters", engine::parameter_count(inspection.checkpoint));
  out.set("layers", spec ? Json(static_cast<int64_t>(spec->layers.size())) : Json());
  out.set("hidden_size", spec ? Json(spec->hidden_size) : Json());
  out.set("vocab_size", spec ? Json(spec->vocab_size) : Json());
  out.set("context_length", spec ? Json(spec->context_length) : Json());
  out.set("chat_template", !inspection.checkpoint.chat_template.empty());
  out.set("inputs", inputs_json(inspection));
  out.set("weights_bytes", memory.weight_bytes);
  out.set("weights_source", "exact");
  out.set("weights_by_scheme", std::move(schemes));
  out.set("kv_bytes_per_token", or_null(memory.kv_bytes_per_token));
  out.set("kv_bytes_total", or_null(memory.kv_bytes));
  out.set("kv_detail", memory.kv_detail.empty() ? Json() : Json(memory.kv_detail));
  out.set("per_slot_overhead_bytes", Json());
  out.set("activation_bytes", or_null(memory.activation_bytes));
  out.set("program_bytes", memory.program_bytes);
  out.set("backend_inflight_bytes", 0);
  out.set("headroom_bytes", or_null(memory.headroom_bytes));
  out.set("headroom_factor", memory.headroom);
  out.set("budget_bytes", or_null(memory.budget_bytes));
  out.set("total_bytes", or_null(memory.total_bytes));
  out.set("fits", or_null(memory.fits()));
  return out;
}

std::string bytes_text(const std::optional<int64_t>& bytes) {
  return bytes ? engine::format_bytes(*bytes) : std::string("unknown");
}

std::string scheme_text(const weights::Checkpoint& checkpoint) {
  std::string out;
  for (const auto& [scheme, bytes] : bytes_by_scheme(checkpoint))
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", scheme, engine::format_bytes(bytes));
  return out;
}

std::string to_text(const Inspection& inspection) {
  const MemoryReport& memory = inspection.memory;
  std::string out = fmt::format("Model        {} ({})\nFile         {} ({})\n", inspection.model.name,
                                inspection.model.source, inspection.model.path, inspection.checkpoint.format);
  if (inspection.spec) {
    const models::DecoderSpec& spec = *inspection.spec;
    out += fmt::format("Family       {}: {} layers, hidden size {}, vocabulary {}, context {}\n", spec.family,
                       spec.layers.size(), spec.hidden_size, spec.vocab_size, spec.context_length);
  } else {
    out += fmt::format("Family       not supported: {}\n", inspection.unsupported);
  }
  out += fmt::format("Parameters   {:.1f} million, chat template: {}\n",
                     static_cast<double>(engine::parameter_count(inspection.checkpoint)) / 1e6,
                     inspection.checkpoint.chat_template.empty() ? "no" : "yes");
  out += fmt::format("Weights      {} (exact; {})\n", engine::format_bytes(memory.weight_bytes),
                     scheme_text(inspection.checkpoint));
  out += fmt::format("K/V cache    {} for {} tokens x {} ({})\n", bytes_text(memory.kv_bytes), memory.tokens,
                     inspection.query.load.max_sequences, memory.kv_detail.empty() ? "unknown" : memory.kv_detail);
  out += fmt::format("Activations  {}\n", bytes_text(memory.activation_bytes));
  out += fmt::format("Program      {} (code, scratch, tokenizer)\n", engine::format_bytes(memory.program_bytes));
  out += fmt::format("Headroom     {} (factor {})\n", bytes_text(memory.headroom_bytes), memory.headroom);
  out += fmt::format("Total        {}\n", bytes_text(memory.total_bytes));
  out += fmt::format("Available    {}\n", bytes_text(memory.budget_bytes));
  const auto fits = memory.fits();
  out += fmt::format("Fits         {}\n", !fits ? "unknown" : *fits ? "yes" : "no");
  if (inspection.quant_label != "default")
    out +=
        fmt::format("Quantization {} (a label; the weights above are the checkpoint's own)\n", inspection.quant_label);
  return out;
}

}  // namespace

Result<int> run_inspect(Context& context) {
  Inspection inspection;
  const ModelSettings settings = read_model(context.options);
  const bool quiet = read_verbosity(context.options).quiet;
  const bool json = context.options.flag("--json");
  VEDETTE_ASSIGN_OR_RETURN(inspection.query.memory, read_memory(context.options));
  VEDETTE_ASSIGN_OR_RETURN(inspection.query.load.compute,
                           parse_compute(context.options.text("--compute").value_or("auto")));
  VEDETTE_ASSIGN_OR_RETURN(inspection.query.load.kv_type, read_kv_type(context.options));
  const int64_t tokens = context.options.integer("--max-tokens").value_or(8192);
  inspection.query.tokens = tokens > 0 ? tokens : INT64_MAX;
  inspection.query.load.max_sequences = static_cast<int>(context.options.integer("--batch").value_or(1));
  inspection.quant_label = context.options.text("--quant").value_or("default");
  VEDETTE_RETURN_IF_ERROR(start(context));

  VEDETTE_ASSIGN_OR_RETURN(inspection.model, find_model(settings.model, settings, quiet));
  VEDETTE_ASSIGN_OR_RETURN(inspection.checkpoint, weights::open_checkpoint(inspection.model.path));
  auto spec = models::build_spec(inspection.checkpoint);
  if (spec.ok())
    inspection.spec = std::move(*spec);
  else if (spec.error().kind == ErrorKind::kUnsupported)
    inspection.unsupported = spec.error().message;
  else
    return std::move(spec).error();
  if (!inspection.spec && tokens <= 0) inspection.query.tokens = 8192;
  inspection.memory =
      report_memory(inspection.checkpoint, inspection.spec ? &*inspection.spec : nullptr, inspection.query);
  inspection.query.tokens = inspection.memory.tokens;
  VEDETTE_RETURN_IF_ERROR(print(json ? to_json(inspection).dump(2) + "\n" : printable(to_text(inspection))));
  return kExitDone;
}

}  // namespace vedette::cli
