#include "engine/load.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "models/registry.h"
#include "ops/cpu/cpu_backend.h"

namespace vedette::engine {
namespace {

// Above it int8 activations cost too little quality to pay for more (docs/architecture.md, "Precision of products").
constexpr int64_t kSmallModelParameters = 1'500'000'000;

ops::DType choose_kv_type(const LoadOptions& options, ops::Compute compute, const models::DecoderSpec& spec) {
  if (options.kv_type) return *options.kv_type;
  if (compute == ops::Compute::kF32) return ops::DType::kF32;
  return spec.f16_kv_overflows ? ops::DType::kBF16 : ops::DType::kF16;
}

Status check_options(const LoadOptions& options) {
  const auto at_least = [](const char* field, int64_t value, int64_t least) -> Status {
    if (value >= least) return ok_status();
    return invalid_request(field, "{} is {}, must be at least {}", field, value, least);
  };
  VEDETTE_RETURN_IF_ERROR(at_least("threads", options.threads, 0));
  VEDETTE_RETURN_IF_ERROR(at_least("context_length", options.context_length, 0));
  VEDETTE_RETURN_IF_ERROR(at_least("max_sequences", options.max_sequences, 1));
  VEDETTE_RETURN_IF_ERROR(at_least("prefill_chunk", options.prefill_chunk, 1));
  VEDETTE_RETURN_IF_ERROR(at_least("grant_interval", options.grant_interval, 0));
  VEDETTE_RETURN_IF_ERROR(at_least("max_waiting", options.max_waiting, 0));
  VEDETTE_RETURN_IF_ERROR(at_least("cache_tokens", options.cache_tokens, -1));
  VEDETTE_RETURN_IF_ERROR(at_least("snapshot_interval", options.snapshot_interval, 1));
  VEDETTE_RETURN_IF_ERROR(at_least("prefix_cache_tokens", options.prefix_cache_tokens, 0));
  VEDETTE_RETURN_IF_ERROR(at_least("kv_budget_bytes", options.kv_budget_bytes, 0));
  return at_least("max_logit_rows", options.max_logit_rows, 0);
}

Result<std::unique_ptr<ops::Backend>> make_backend(const LoadOptions& options, ops::Compute compute) {
  VEDETTE_ASSIGN_OR_RETURN(const ops::cpu::Isa isa, ops::cpu::choose_isa(options.isa));
  ops::cpu::CpuConfig config;
  config.compute = compute;
  config.isa = isa;
  config.threads = options.threads > 0 ? options.threads : ops::cpu::default_thread_count();
  config.repack = options.repack;
  config.pool = options.pool;
  return ops::cpu::make_cpu_backend(config);
}

Result<KvPlan> plan_memory(const weights::Checkpoint& checkpoint, const LoadOptions& options,
                           const models::DecoderSpec& spec, const models::DecoderConfig& config) {
  const std::vector<models::KvGroupPlan> groups = models::plan_kv_groups(spec);
  KvPlanInput input;
  input.groups = groups;
  input.kv_type = config.kv_type;
  input.weight_bytes = checkpoint.tensor_bytes;
  input.activation_bytes = models::activation_bytes(spec, config);
  input.program_bytes = program_bytes(checkpoint);
  input.model_context = spec.context_length;
  input.context_length = options.context_length;
  input.max_sequences = options.max_sequences;
  input.prefill_chunk = std::max(options.prefill_chunk, options.max_logit_rows);
  input.kv_budget_bytes = options.kv_budget_bytes;
  input.cache_tokens = options.prefix_cache ? options.cache_tokens : 0;
  VEDETTE_ASSIGN_OR_RETURN(input.available_bytes, available_memory());
  const int64_t really_available = input.available_bytes;
  if (!options.check_memory) input.available_bytes = int64_t{1} << 60;
  VEDETTE_ASSIGN_OR_RETURN(KvPlan plan, plan_kv(input));
  plan.memory.available_bytes = really_available;
  return plan;
}

Status add_id(const Json& value, const std::string& where, std::vector<int32_t>& ids) {
  const bool in_range = value.is_int() && value.as_int() >= -1 && value.as_int() <= std::numeric_limits<int32_t>::max();
  if (!in_range)
    return corrupt_file("eos_token_id", "{}: eos_token_id: expected a token id or a list of them, found {}; correct it",
                        where, value.dump().substr(0, 60));
  if (value.as_int() >= 0) ids.push_back(static_cast<int32_t>(value.as_int()));
  return ok_status();
}

Status add_ids(const Json& config, const std::string& where, std::vector<int32_t>& ids) {
  if (!config.is_null() && !config.is_object())
    return corrupt_file("", "{}: expected a JSON object, found {}; correct or remove it", where,
                        config.dump().substr(0, 60));
  const Json* value = config.find("eos_token_id");
  if (value == nullptr || value->is_null()) return ok_status();
  if (!value->is_array()) return add_id(*value, where, ids);
  for (const Json& item : value->as_array()) VEDETTE_RETURN_IF_ERROR(add_id(item, where, ids));
  return ok_status();
}

// A checkpoint may bring tokens beside the model that its embedding has no row for, as text-only cuts of a larger model
// do: a prompt that spells one out is refused by itself. But what plain text becomes must have one.
Status check_tokens(const weights::Checkpoint& checkpoint, const text::Tokenizer& tokenizer,
                    const std::vector<int32_t>& eos, int64_t vocab_size) {
  const auto misfit = [&](std::string_view what, int64_t id) {
    return corrupt_file("vocab_size",
                        "{}: {} has id {}, the model has ids from 0 to {} (vocab_size {}); the tokenizer and the "
                        "weights do not belong together, take both from the same place",
                        checkpoint.path, what, id, vocab_size - 1, vocab_size);
  };
  if (const int64_t last = tokenizer.plain_size() - 1; last >= vocab_size)
    return misfit("the tokenizer's last ordinary token", last);
  if (const auto bos = tokenizer.bos(); bos && *bos >= vocab_size)
    return misfit("the tokenizer's first token of a text", *bos);
  for (const int32_t id : eos)
    if (id >= vocab_size)
      log::warning("{}: eos_token_id {} is beyond the model's vocabulary of {}: it never ends a reply", checkpoint.path,
                   id, vocab_size);
  return ok_status();
}

}  // namespace

ops::Compute choose_compute(ComputeChoice choice, int64_t parameters) {
  switch (choice) {
    case ComputeChoice::kI8:
      return ops::Compute::kI8;
    case ComputeChoice::kI16:
      return ops::Compute::kI16;
    case ComputeChoice::kF32:
      return ops::Compute::kF32;
    case ComputeChoice::kAuto:
      break;
  }
  return parameters < kSmallModelParameters ? ops::Compute::kI16 : ops::Compute::kI8;
}

models::DecoderConfig decoder_config(const LoadOptions& options, ops::Compute compute,
                                     const models::DecoderSpec& spec) {
  models::DecoderConfig config;
  config.max_logit_rows = std::max({options.max_sequences, options.max_logit_rows, kLeastLogitRows});
  config.max_rows = std::max(options.prefill_chunk + options.max_sequences - 1, config.max_logit_rows);
  config.kv_type = choose_kv_type(options, compute, spec);
  return config;
}

int64_t parameter_count(const weights::Checkpoint& checkpoint) {
  int64_t count = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    count += elements;
  }
  return count;
}

Result<std::vector<int32_t>> end_tokens(const weights::Checkpoint& checkpoint,
                                        const std::optional<int32_t>& tokenizer_eos) {
  std::vector<int32_t> ids;
  const bool gguf_file = checkpoint.format == "gguf";
  VEDETTE_RETURN_IF_ERROR(add_ids(checkpoint.generation_config,
                                  gguf_file ? checkpoint.path : checkpoint.path + "/generation_config.json", ids));
  VEDETTE_RETURN_IF_ERROR(
      add_ids(checkpoint.config, gguf_file ? checkpoint.path : checkpoint.path + "/config.json", ids));
  if (tokenizer_eos) ids.push_back(*tokenizer_eos);
  if (const auto* gguf = std::get_if<weights::GgufVocabulary>(&checkpoint.tokenizer))
    for (const auto& id : {gguf->eos, gguf->eot, gguf->eom})
      if (id) ids.push_back(*id);
  std::erase_if(ids, [](int32_t id) { return id < 0; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Result<LoadedDecoder> load_decoder(const weights::Checkpoint& checkpoint, const LoadOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  VEDETTE_RETURN_IF_ERROR(check_options(options));
  VEDETTE_ASSIGN_OR_RETURN(models::DecoderSpec spec, models::build_spec(checkpoint));

  LoadedDecoder loaded;
  loaded.storage = checkpoint.storage;
  LoadReport& report = loaded.report;
  report.family = spec.family;
  report.parameters = parameter_count(checkpoint);
  const ops::Compute compute = choose_compute(options.compute, report.parameters);
  VEDETTE_ASSIGN_OR_RETURN(std::unique_ptr<ops::Backend> backend, make_backend(options, compute));

  models::DecoderConfig config = decoder_config(options, compute, spec);
  VEDETTE_ASSIGN_OR_RETURN(const KvPlan plan, plan_memory(checkpoint, options, spec, config));
  config.kv_blocks = plan.blocks;

  report.backend = backend->info();
  report.kv_type = config.kv_type;
  report.context_length = plan.context_length;
  report.max_sequences = options.max_sequences;
  report.kv_blocks = plan.blocks;
  report.estimate = plan.memory;
  VEDETTE_ASSIGN_OR_RETURN(report.eos, end_tokens(checkpoint, std::nullopt));

  VEDETTE_ASSIGN_OR_RETURN(
      loaded.decoder, models::Decoder::load(checkpoint, std::move(spec), config, std::move(backend), options.progress));
  VEDETTE_RETURN_IF_ERROR(weights::storage_intact(checkpoint));
  report.memory = loaded.decoder->backend().memory();
  report.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();

  loaded.config.context_length = plan.context_length;
  loaded.config.max_sequences = options.max_sequences;
  loaded.config.prefill_chunk = options.prefill_chunk;
  loaded.config.grant_interval = options.grant_interval;
  loaded.config.max_waiting = options.max_waiting;
  loaded.config.prefix_cache = options.prefix_cache;
  loaded.config.snapshot_interval = options.snapshot_interval;
  loaded.config.prefix_cache_tokens = options.prefix_cache_tokens;
  loaded.config.chunk_ms = options.chunk_ms;
  // A light copy: the path and what keeps the mappings.
  weights::Checkpoint mapped;
  mapped.path = checkpoint.path;
  mapped.storage = checkpoint.storage;
  loaded.config.health = [mapped = std::move(mapped)] { return weights::storage_intact(mapped); };
  return loaded;
}

Result<LoadedModel> load_model(const weights::Checkpoint& checkpoint, const LoadOptions& options) {
  VEDETTE_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::create(checkpoint.tokenizer));
  return load_model(checkpoint, options, std::move(tokenizer));
}

Result<LoadedModel> load_model(const weights::Checkpoint& checkpoint, const LoadOptions& options,
                               text::Tokenizer tokenizer) {
  VEDETTE_ASSIGN_OR_RETURN(std::vector<int32_t> eos, end_tokens(checkpoint, tokenizer.eos()));
  VEDETTE_ASSIGN_OR_RETURN(const models::DecoderSpec spec, models::build_spec(checkpoint));
  VEDETTE_RETURN_IF_ERROR(check_tokens(checkpoint, tokenizer, eos, spec.vocab_size));
  VEDETTE_ASSIGN_OR_RETURN(LoadedDecoder loaded, load_decoder(checkpoint, options));
  LoadedModel model;
  model.storage = std::move(loaded.storage);
  model.report = std::move(loaded.report);
  model.report.eos = std::move(eos);
  VEDETTE_ASSIGN_OR_RETURN(
      model.engine, Engine::start(std::move(loaded.decoder), std::move(tokenizer), model.report.eos, loaded.config));
  return model;
}

}  // namespace vedette::engine
