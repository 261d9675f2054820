#include "models/decoder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"
#include "models/decoder_plan.h"
#include "models/weight_loader.h"

namespace vedette::models {

namespace {

// Parts with their handles; every argument of a step's operations is settled when loading.
struct AttentionPart {
  std::array<ops::LinearOutput, 3> qkv;
  ops::AttentionInputParams inputs;
  ops::AttentionParams attend;
  ops::LinearOutput output;
};

struct MlpPart {
  std::array<ops::LinearOutput, 2> inputs;  // up, then gate
  size_t n_inputs = 1;
  ops::Activation activation = ops::Activation::kSilu;
  ops::ActivationParams activation_params;
  ops::LinearOutput output;
};

struct ParallelPart {
  std::optional<ops::NormParams> attention_norm, mlp_norm;
  AttentionPart attention;
  MlpPart mlp;
  float scale = 1;
};

using LoadedPart = std::variant<ops::NormParams, AttentionPart, MlpPart, ResidualSpec, ParallelPart>;

}  // namespace

struct Decoder::Impl {
  DecoderSpec spec;
  DecoderConfig config;
  std::shared_ptr<const void> storage;  // mappings that matrices borrow; outlives the back end
  std::unique_ptr<ops::Backend> backend;
  KvPlan kv;
  std::vector<ops::KvGroup> kv_handles;
  std::vector<std::pair<ActivationTensor, ops::Tensor>> tensors;

  ops::Matrix embedding, position_embedding;
  std::vector<std::vector<LoadedPart>> layers;
  std::optional<ops::NormParams> final_norm;
  ops::LinearOutput head;
  ops::Tensor hidden, working, parallel, gathered;

  Status load(const weights::Checkpoint& checkpoint, const std::function<void(int64_t, int64_t)>& progress);
  Status create_buffers();
  ops::Tensor tensor(Role role, int64_t cols) const;
  Result<LoadedPart> load_part(WeightLoader& loader, const Part& part, size_t& slot);
  Result<AttentionPart> load_attention(WeightLoader& loader, const AttentionSpec& attention, const KvSlot& slot,
                                       ops::Tensor out);
  Result<MlpPart> load_mlp(WeightLoader& loader, const MlpSpec& mlp, ops::Tensor out);

  Status check(const ops::Step& step) const;
  Status check_row(const ops::Row& row, size_t index, size_t n_sequences) const;
  void record(const ops::Step& step, bool with_logits);
  // Each part reads `current` (x of the walk) and leaves its own result there.
  void run_part(const ops::NormParams& norm, ops::Tensor& current);
  void run_part(const AttentionPart& attention, ops::Tensor& current);
  void run_part(const MlpPart& mlp, ops::Tensor& current);
  void run_part(const ResidualSpec& residual, ops::Tensor& current);
  void run_part(const ParallelPart& block, ops::Tensor& current);
};

ops::Tensor Decoder::Impl::tensor(Role role, int64_t cols) const {
  for (const auto& [planned, handle] : tensors)
    if (planned == ActivationTensor{role, cols}) return handle;
  return {};
}

Status Decoder::Impl::create_buffers() {
  if (config.kv_blocks.size() != kv.groups.size())
    return internal_error("kv_blocks", "the model has {} K/V groups, block counts were given for {}", kv.groups.size(),
                          config.kv_blocks.size());
  for (size_t g = 0; g < kv.groups.size(); ++g) {
    const KvGroupPlan& plan = kv.groups[g];
    VEDETTE_ASSIGN_OR_RETURN(const ops::KvGroup handle,
                             backend->create_kv_group({plan.n_layers, plan.n_kv_heads, plan.head_dim, plan.value_dim,
                                                       config.kv_type, plan.window, config.kv_blocks[g]}));
    kv_handles.push_back(handle);
  }
  for (const ActivationTensor& planned : plan_activations(spec)) {
    VEDETTE_ASSIGN_OR_RETURN(const ops::Tensor handle, backend->create_tensor(planned.rows(config), planned.cols));
    tensors.emplace_back(planned, handle);
  }
  hidden = tensor(Role::kHidden, spec.hidden_size);
  working = tensor(Role::kWorking, spec.hidden_size);
  parallel = tensor(Role::kParallel, spec.hidden_size);
  gathered = tensor(Role::kGathered, spec.hidden_size);
  return ok_status();
}

Result<AttentionPart> Decoder::Impl::load_attention(WeightLoader& loader, const AttentionSpec& attention,
                                                    const KvSlot& slot, ops::Tensor out) {
  AttentionPart part;
  const std::array<std::pair<const LinearSpec*, Role>, 3> projections{
      {{&attention.q, Role::kQuery}, {&attention.k, Role::kKey}, {&attention.v, Role::kValue}}};
  for (size_t i = 0; i < projections.size(); ++i) {
    const auto& [linear, role] = projections[i];
    VEDETTE_ASSIGN_OR_RETURN(const LoadedLinear loaded, loader.linear(*linear));
    part.qkv[i] = {loaded.matrix, loaded.bias, tensor(role, linear->out_features)};
  }
  ops::AttentionInputParams& inputs = part.inputs;
  inputs.q = part.qkv[0].out;
  inputs.k = part.qkv[1].out;
  inputs.v = part.qkv[2].out;
  inputs.n_heads = attention.n_heads;
  inputs.group = kv_handles[static_cast<size_t>(slot.group)];
  inputs.layer = slot.layer;
  if (attention.q_norm) {
    VEDETTE_ASSIGN_OR_RETURN(inputs.q_norm, loader.norm(*attention.q_norm));
  }
  if (attention.k_norm) {
    VEDETTE_ASSIGN_OR_RETURN(inputs.k_norm, loader.norm(*attention.k_norm));
  }
  inputs.norm_after_rope = attention.norm_after_rope;
  inputs.rope.kind = attention.rope.kind;
  inputs.rope.rotary_dim = attention.rope.rotary_dim;
  inputs.rope.scale = attention.rope.scale;
  VEDETTE_ASSIGN_OR_RETURN(inputs.rope.inverse_frequencies, loader.frequencies(attention.rope.inverse_frequencies));
  inputs.query_scale = {attention.query_scale_beta, attention.query_scale_context};
  inputs.clip = attention.clip_qkv;
  part.attend = {inputs.q,         tensor(Role::kAttended, attention.o.in_features),
                 inputs.n_heads,   inputs.group,
                 inputs.layer,     attention.scale,
                 attention.softcap};
  VEDETTE_ASSIGN_OR_RETURN(const LoadedLinear output, loader.linear(attention.o));
  part.output = {output.matrix, output.bias, out};
  return part;
}

Result<MlpPart> Decoder::Impl::load_mlp(WeightLoader& loader, const MlpSpec& mlp, ops::Tensor out) {
  MlpPart part;
  VEDETTE_ASSIGN_OR_RETURN(const LoadedLinear up, loader.linear(mlp.up));
  part.inputs[0] = {up.matrix, up.bias, tensor(Role::kUp, mlp.up.out_features)};
  if (mlp.gate) {
    VEDETTE_ASSIGN_OR_RETURN(const LoadedLinear gate, loader.linear(*mlp.gate));
    part.inputs[1] = {gate.matrix, gate.bias, tensor(Role::kGate, mlp.gate->out_features)};
    part.n_inputs = 2;
  }
  part.activation = mlp.activation;
  VEDETTE_ASSIGN_OR_RETURN(part.activation_params, loader.activation(mlp));
  VEDETTE_ASSIGN_OR_RETURN(const LoadedLinear down, loader.linear(mlp.down));
  part.output = {down.matrix, down.bias, out};
  return part;
}

Result<LoadedPart> Decoder::Impl::load_part(WeightLoader& loader, const Part& part, size_t& slot) {
  if (const auto* norm = std::get_if<NormSpec>(&part)) {
    VEDETTE_ASSIGN_OR_RETURN(ops::NormParams loaded, loader.norm(*norm));
    return LoadedPart(loaded);
  }
  if (const auto* attention = std::get_if<AttentionSpec>(&part)) {
    VEDETTE_ASSIGN_OR_RETURN(AttentionPart loaded, load_attention(loader, *attention, kv.slots[slot++], working));
    return LoadedPart(std::move(loaded));
  }
  if (const auto* mlp = std::get_if<MlpSpec>(&part)) {
    VEDETTE_ASSIGN_OR_RETURN(MlpPart loaded, load_mlp(loader, *mlp, working));
    return LoadedPart(std::move(loaded));
  }
  if (const auto* residual = std::get_if<ResidualSpec>(&part)) return LoadedPart(*residual);
  const auto& block = std::get<ParallelBlockSpec>(part);
  ParallelPart loaded;
  loaded.scale = block.scale;
  if (block.attention_norm) {
    VEDETTE_ASSIGN_OR_RETURN(loaded.attention_norm, loader.norm(*block.attention_norm));
  }
  if (block.mlp_norm) {
    VEDETTE_ASSIGN_OR_RETURN(loaded.mlp_norm, loader.norm(*block.mlp_norm));
  }
  VEDETTE_ASSIGN_OR_RETURN(loaded.attention, load_attention(loader, block.attention, kv.slots[slot++], parallel));
  VEDETTE_ASSIGN_OR_RETURN(loaded.mlp, load_mlp(loader, block.mlp, working));
  return LoadedPart(std::move(loaded));
}

Status Decoder::Impl::load(const weights::Checkpoint& checkpoint,
                           const std::function<void(int64_t, int64_t)>& progress) {
  VEDETTE_RETURN_IF_ERROR(create_buffers());
  WeightLoader loader(checkpoint, spec, *backend, progress);
  VEDETTE_ASSIGN_OR_RETURN(embedding, loader.table(spec.embedding, spec.vocab_size, spec.hidden_size));
  if (!spec.position_embedding.empty()) {
    VEDETTE_ASSIGN_OR_RETURN(position_embedding,
                             loader.table(spec.position_embedding, spec.context_length, spec.hidden_size));
  }
  size_t slot = 0;
  for (const LayerSpec& layer : spec.layers) {
    std::vector<LoadedPart>& parts = layers.emplace_back();
    for (const Part& part : layer.parts) {
      VEDETTE_ASSIGN_OR_RETURN(LoadedPart loaded, load_part(loader, part, slot));
      parts.push_back(std::move(loaded));
    }
  }
  if (spec.final_norm) {
    VEDETTE_ASSIGN_OR_RETURN(final_norm, loader.norm(*spec.final_norm));
  }
  VEDETTE_ASSIGN_OR_RETURN(const LoadedLinear loaded_head, loader.linear(spec.head));
  head = {loaded_head.matrix, loaded_head.bias, tensor(Role::kLogits, spec.vocab_size)};
  return weights::storage_intact(checkpoint);
}

Status Decoder::Impl::check_row(const ops::Row& row, size_t index, size_t n_sequences) const {
  if (row.source == ops::RowSource::kEmbedding)
    return unsupported("rows", "row {}: rows of an embedding buffer (images, audio) are not supported", index);
  if (row.source == ops::RowSource::kPreviousOutput)
    return unsupported("rows", "row {}: token ids left on the device are not supported", index);
  if (row.adapter >= 0) return unsupported("rows", "row {}: adapters are not supported", index);
  if (row.wants_taps) return unsupported("rows", "row {}: taps of hidden states are not supported", index);
  if (row.span >= 0) return unsupported("rows", "row {}: spans that see themselves both ways are not supported", index);
  if (row.value < 0 || row.value >= spec.vocab_size)
    return invalid_request("rows", "row {}: token id {} is outside the vocabulary of {}", index, row.value,
                           spec.vocab_size);
  if (row.position[0] < 0 || (position_embedding && row.position[0] >= spec.context_length))
    return invalid_request("rows", "row {}: position {} is outside the {} positions this model has learned", index,
                           row.position[0], spec.context_length);
  if (row.sequence < 0 || static_cast<size_t>(row.sequence) >= n_sequences)
    return internal_error("rows", "row {}: sequence {} of {}", index, row.sequence, n_sequences);
  return ok_status();
}

Status Decoder::Impl::check(const ops::Step& step) const {
  int n_logits = 0;
  for (size_t i = 0; i < step.rows.size(); ++i) {
    VEDETTE_RETURN_IF_ERROR(check_row(step.rows[i], i, step.sequences.size()));
    n_logits += step.rows[i].wants_logits ? 1 : 0;
  }
  if (static_cast<int64_t>(step.rows.size()) > config.max_rows || n_logits > config.max_logit_rows)
    return internal_error("rows", "a step of {} rows and {} logits exceeds the limits of {} and {}", step.rows.size(),
                          n_logits, config.max_rows, config.max_logit_rows);
  for (const ops::StepSequence& sequence : step.sequences)
    if (sequence.block_tables.size() != kv.groups.size())
      return internal_error("block_tables", "a sequence has block tables for {} of {} K/V groups",
                            sequence.block_tables.size(), kv.groups.size());
  return ok_status();
}

void Decoder::Impl::run_part(const ops::NormParams& norm, ops::Tensor& current) {
  backend->norm(current, norm, working);
  current = working;
}

void Decoder::Impl::run_part(const AttentionPart& attention, ops::Tensor& current) {
  backend->linear(current, attention.qkv);
  backend->attention_inputs(attention.inputs);
  backend->attention(attention.attend);
  backend->linear(attention.attend.out, {&attention.output, 1});
  current = attention.output.out;
}

void Decoder::Impl::run_part(const MlpPart& mlp, ops::Tensor& current) {
  const ops::Tensor up = mlp.inputs[0].out;
  backend->linear(current, std::span(mlp.inputs).first(mlp.n_inputs));
  if (mlp.n_inputs == 2)
    backend->gated_activation(mlp.activation, mlp.inputs[1].out, up, up);
  else
    backend->activate(mlp.activation, mlp.activation_params, up);
  backend->linear(up, {&mlp.output, 1});
  current = mlp.output.out;
}

void Decoder::Impl::run_part(const ResidualSpec& residual, ops::Tensor& current) {
  backend->add_scaled(hidden, residual.scale, current);
  current = hidden;
}

void Decoder::Impl::run_part(const ParallelPart& block, ops::Tensor& current) {
  ops::Tensor input = hidden;
  if (block.attention_norm) run_part(*block.attention_norm, input);
  ops::Tensor attended = input;
  run_part(block.attention, attended);
  if (block.mlp_norm) {
    input = hidden;
    run_part(*block.mlp_norm, input);
  }
  run_part(block.mlp, input);
  backend->add_scaled(hidden, block.scale, attended);
  backend->add_scaled(hidden, block.scale, input);
  current = hidden;
}

void Decoder::Impl::record(const ops::Step& step, bool with_logits) {
  backend->begin_step(step);
  backend->embed(embedding, spec.embedding_scale, hidden);
  if (position_embedding) backend->add_position_embedding(position_embedding, hidden);
  for (const std::vector<LoadedPart>& layer : layers) {
    ops::Tensor current = hidden;
    for (const LoadedPart& part : layer) std::visit([&](const auto& loaded) { run_part(loaded, current); }, part);
  }
  if (!with_logits) return;
  backend->gather_logit_rows(hidden, gathered);
  if (final_norm) backend->norm(gathered, *final_norm, gathered);
  backend->linear(gathered, {&head, 1});
  if (spec.logit_scale != 1.0f || spec.logit_softcap != 0.0f)
    backend->finish_logits(head.out, spec.logit_scale, spec.logit_softcap);
}

Decoder::Decoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Decoder::~Decoder() = default;

Result<std::unique_ptr<Decoder>> Decoder::load(const weights::Checkpoint& checkpoint, DecoderSpec spec,
                                               const DecoderConfig& config, std::unique_ptr<ops::Backend> backend,
                                               const std::function<void(int64_t, int64_t)>& progress) {
  auto impl = std::make_unique<Impl>();
  impl->spec = std::move(spec);
  impl->config = config;
  impl->storage = checkpoint.storage;
  impl->backend = std::move(backend);
  impl->kv = plan_kv(impl->spec);
  VEDETTE_RETURN_IF_ERROR(impl->load(checkpoint, progress));
  return std::unique_ptr<Decoder>(new Decoder(std::move(impl)));
}

Status Decoder::run(const ops::Step& step) {
  if (step.rows.empty()) return ok_status();
  VEDETTE_RETURN_IF_ERROR(impl_->check(step));
  const bool with_logits = std::ranges::any_of(step.rows, &ops::Row::wants_logits);
  impl_->record(step, with_logits);
  return impl_->backend->end_step();
}

std::span<const float> Decoder::logits(int64_t index) const {
  return impl_->backend->host_row(impl_->head.out, index);
}

const DecoderSpec& Decoder::spec() const {
  return impl_->spec;
}
const DecoderConfig& Decoder::config() const {
  return impl_->config;
}
const std::vector<KvGroupPlan>& Decoder::kv_groups() const {
  return impl_->kv.groups;
}
ops::Backend& Decoder::backend() {
  return *impl_->backend;
}

}  // namespace vedette::models
