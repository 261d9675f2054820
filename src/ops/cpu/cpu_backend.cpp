#include "ops/cpu/cpu_backend.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "ops/cpu/aligned_buffer.h"
#include "ops/cpu/attention_plan.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/kv_cache.h"
#include "ops/cpu/linear_operation.h"
#include "ops/cpu/matmul.h"
#include "ops/cpu/pool.h"
#include "ops/cpu/program.h"
#include "ops/cpu/program_stages.h"
#include "ops/cpu/weight_memory.h"

namespace vedette::ops::cpu {
namespace {

// Rough nanoseconds per element on one core; they size chunks and nothing else.
constexpr double kNormCost = 0.2;
constexpr double kActivateCost = 0.6;
constexpr double kMoveCost = 0.1;
constexpr double kPrepareCost = 0.4;
constexpr double kRopeCost = 0.4;
constexpr double kStoreCost = 1.0;
constexpr double kSinCosCost = 20;

// Partial attention results are kept for a merge only up to this size.
constexpr int64_t kMostPartialBytes = int64_t{16} << 20;

struct TensorState {
  AlignedBuffer<float> data;
  Rows rows;
  int64_t max_rows = 0;
  AlignedBuffer<std::byte> prepared;  // made when a product first reads the tensor
  int64_t prepared_stride = 0;
  AlignedBuffer<float> rounded;  // likewise
  // Of the step being recorded:
  RowSet set = RowSet::kAll;
  bool is_prepared = false;
  bool is_rounded = false;
};

struct RopeTable {
  int32_t vector = -1;
  int rotary_dim = 0;
  float scale = 1;
  std::vector<float> values;
  bool recorded = false;  // in this step
};

struct GroupState {
  KvCache cache;
  std::vector<const int32_t*> blocks;  // per row of the step
  AttentionSplits splits;
  bool splits_built = false;    // in this step
  std::vector<float> partials;  // grows between steps only: operations hold pointers into it
  int64_t partials_wanted = 0;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuConfig& config)
      : config_(config),
        kernels_(&kernels_for(config.isa)),
        pool_(config.pool != nullptr ? config.pool : std::make_shared<Pool>(config.threads)),
        program_(pool_->threads()) {
    info_.device = "cpu";
    info_.isa = to_string(config.isa);
    info_.threads = pool_->threads();
    info_.compute = config.compute;
    // One thread has nobody to take over its chunks. Without memory for them results are written in place.
    if (info_.threads > 1)
      linear_results_ =
          make_aligned<float>(static_cast<size_t>(info_.threads) * static_cast<size_t>(LinearOperation::kResultFloats));
  }

  const BackendInfo& info() const override { return info_; }
  MemoryUse memory() const override { return memory_; }

  Result<Matrix> load_matrix(const HostMatrix& matrix) override;
  Result<Vector> load_vector(std::span<const float> values) override;
  Result<KvGroup> create_kv_group(const KvGroupConfig& config) override;
  Result<Tensor> create_tensor(int64_t max_rows, int64_t cols) override;

  void begin_step(const Step& step) override;
  void embed(Matrix table, float scale, Tensor out) override;
  void add_position_embedding(Matrix table, Tensor inout) override;
  void norm(Tensor in, const NormParams& params, Tensor out) override;
  void linear(Tensor in, std::span<const LinearOutput> outputs) override;
  void attention_inputs(const AttentionInputParams& params) override;
  void attention(const AttentionParams& params) override;
  void activate(Activation kind, const ActivationParams& params, Tensor inout) override;
  void gated_activation(Activation kind, Tensor gate, Tensor up, Tensor out) override;
  void add_scaled(Tensor inout, float scale, Tensor addend) override;
  void copy(Tensor in, Tensor out) override;
  void gather_logit_rows(Tensor in, Tensor out) override;
  void finish_logits(Tensor logits, float scale, float softcap) override;
  Status end_step() override;
  std::span<const float> host_row(Tensor tensor, int64_t row) const override {
    const TensorState& state = tensors_[static_cast<size_t>(tensor.id)];
    return {state.rows.row(row), static_cast<size_t>(state.rows.cols)};
  }

 private:
  TensorState& at(Tensor tensor) { return tensors_[static_cast<size_t>(tensor.id)]; }
  const PackedMatrix& at(Matrix matrix) const { return *matrices_[static_cast<size_t>(matrix.id)]; }
  const std::vector<float>& at(Vector vector) const { return vectors_[static_cast<size_t>(vector.id)]; }
  GroupState& at(KvGroup group) { return groups_[static_cast<size_t>(group.id)]; }
  const float* values_of(Vector vector) const { return vector ? at(vector).data() : nullptr; }

  int64_t rows_in(RowSet set) const {
    return set == RowSet::kAll ? static_cast<int64_t>(step_->rows.size()) : static_cast<int64_t>(logit_rows_.size());
  }
  // Marks a tensor as written over `set` by what is recorded next. False where its rows do not fit: a mistake of the
  // caller, reported by end_step instead of running.
  bool writes(TensorState& tensor, RowSet set) {
    tensor.set = set;
    tensor.is_prepared = tensor.is_rounded = false;
    return require(rows_in(set) <= tensor.max_rows, "a tensor has fewer rows than the step");
  }
  bool require(bool holds, const char* what) {
    if (!holds && mistake_ == nullptr) mistake_ = what;
    return holds && mistake_ == nullptr;
  }
  template <typename Stage>
  void add_stage(RowSet set, RowFunction run, const Stage& stage, double cost) {
    program_.add_rows(set, rows_in(set), run, program_.arena().make(stage), cost);
  }

  void check_step(const Step& step);
  bool check_blocks(const StepSequence& sequence, int64_t first_position, int64_t last_position);
  NormArguments norm_arguments(const NormParams& params, int64_t cols) const;
  bool ensure_prepared(TensorState& tensor);
  bool ensure_rounded(TensorState& tensor);
  const float* rope_table(const RopeParams& rope);
  bool use_splits(GroupState& group, int n_heads);

  CpuConfig config_;
  BackendInfo info_;
  const Kernels* kernels_;
  std::shared_ptr<Pool> pool_;
  AlignedBuffer<float> linear_results_;  // per thread
  MemoryUse memory_;
  WeightMemory weight_memory_;
  std::vector<PackedMatrixPtr> matrices_;
  std::vector<std::vector<float>> vectors_;
  std::vector<TensorState> tensors_;
  std::vector<GroupState> groups_;
  std::vector<RopeTable> rope_tables_;
  AlignedBuffer<std::byte> matmul_scratch_;  // per thread
  int64_t matmul_scratch_stride_ = 0;
  AlignedBuffer<std::byte> attention_scratch_;  // per thread
  int64_t attention_scratch_stride_ = 0;
  AlignedBuffer<float> row_scratch_;  // per thread, one row
  int64_t row_scratch_stride_ = 0;

  // The step being recorded.
  const Step* step_ = nullptr;
  const char* mistake_ = nullptr;
  Program program_;
  std::vector<int32_t> logit_rows_;
  std::vector<AttentionItem> items_;
  std::vector<int32_t> item_of_row_;
};

// Grows a per-thread buffer; false without memory.
template <typename T>
bool grow(AlignedBuffer<T>& buffer, int64_t& stride, int64_t needed, int threads, int64_t& bytes) {
  needed = (needed + 63) / 64 * 64;
  if (needed <= stride) return true;
  AlignedBuffer<T> larger = make_aligned<T>(static_cast<size_t>(needed * threads));
  if (larger == nullptr) return false;
  bytes += (needed - stride) * threads * static_cast<int64_t>(sizeof(T));
  buffer = std::move(larger);
  stride = needed;
  return true;
}

Error no_memory(const char* what, int64_t bytes) {
  return out_of_budget("", "{}: the system has no memory for {} bytes; lower the batch or the context", what, bytes);
}

Result<Matrix> CpuBackend::load_matrix(const HostMatrix& matrix) {
  VEDETTE_ASSIGN_OR_RETURN(PackedMatrixPtr packed, pack_matrix(matrix, config_.repack, {pool_.get(), &weight_memory_}));
  const auto scratch = static_cast<int64_t>(matmul_scratch_bytes(config_.isa, *packed));
  if (!grow(matmul_scratch_, matmul_scratch_stride_, scratch, pool_->threads(), memory_.activation_bytes)) {
    return no_memory("product scratch", scratch * pool_->threads());
  }
  memory_.weight_bytes += packed_owned_bytes(*packed);
  memory_.mapped_bytes += packed_mapped_bytes(*packed);
  matrices_.push_back(std::move(packed));
  return Matrix{static_cast<int32_t>(matrices_.size() - 1)};
}

Result<Vector> CpuBackend::load_vector(std::span<const float> values) {
  vectors_.emplace_back(values.begin(), values.end());
  memory_.weight_bytes += static_cast<int64_t>(values.size_bytes());
  return Vector{static_cast<int32_t>(vectors_.size() - 1)};
}

Result<KvGroup> CpuBackend::create_kv_group(const KvGroupConfig& config) {
  VEDETTE_ASSIGN_OR_RETURN(KvCache cache, KvCache::create(config));
  const int64_t scratch = attention_scratch_bytes(cache.layer(0).head_dim, cache.layer(0).value_stride);
  if (!grow(attention_scratch_, attention_scratch_stride_, scratch, pool_->threads(), memory_.activation_bytes)) {
    return no_memory("attention scratch", scratch * pool_->threads());
  }
  memory_.kv_bytes += cache.bytes();
  groups_.push_back(GroupState{std::move(cache), {}, {}, false, {}, 0});
  return KvGroup{static_cast<int32_t>(groups_.size() - 1)};
}

Result<Tensor> CpuBackend::create_tensor(int64_t max_rows, int64_t cols) {
  constexpr int64_t kLargest = int64_t{1} << 31;
  if (max_rows <= 0 || cols <= 0 || max_rows > kLargest || cols > kLargest) {
    return unsupported("", "activation tensor: expected positive sizes up to {}, found {} x {}", kLargest, max_rows,
                       cols);
  }
  TensorState tensor;
  tensor.max_rows = max_rows;
  tensor.rows.cols = cols;
  // An odd number of cache lines: the same columns of neighbouring rows then lie in different sets of the caches.
  tensor.rows.stride = ((cols + 15) / 16 | 1) * 16;
  const int64_t floats = max_rows * tensor.rows.stride;
  tensor.data = make_aligned<float>(static_cast<size_t>(floats));
  if (tensor.data == nullptr) return no_memory("activations", floats * 4);
  tensor.rows.data = tensor.data.get();
  if (!grow(row_scratch_, row_scratch_stride_, tensor.rows.stride, pool_->threads(), memory_.activation_bytes)) {
    return no_memory("row scratch", tensor.rows.stride * 4 * pool_->threads());
  }
  memory_.activation_bytes += floats * 4;
  tensors_.push_back(std::move(tensor));
  return Tensor{static_cast<int32_t>(tensors_.size() - 1)};
}

// The engine promises all this; what is cheap is checked, because a wrong block id would write into another
// sequence's memory.
void CpuBackend::check_step(const Step& step) {
  size_t covered = 0;
  for (const StepSequence& sequence : step.sequences) {
    const auto first = static_cast<size_t>(sequence.first_row);
    const auto count = static_cast<size_t>(sequence.n_rows);
    if (!require(first == covered && count > 0 && first + count <= step.rows.size(),
                 "sequences do not tile the rows")) {
      return;
    }
    covered += count;
    const int64_t position = step.rows[first].position[0];
    for (size_t i = 0; i < count; ++i) {
      const Row& row = step.rows[first + i];
      if (!require(row.position[0] == position + static_cast<int64_t>(i) && position >= 0,
                   "positions of a sequence are not consecutive")) {
        return;
      }
      if (!require(row.source == RowSource::kToken && row.span < 0 && row.adapter < 0,
                   "the CPU back end takes token rows without spans or adapters")) {
        return;
      }
    }
    if (!check_blocks(sequence, position, position + static_cast<int64_t>(count) - 1)) return;
  }
  require(covered == step.rows.size(), "sequences do not tile the rows");
}

bool CpuBackend::check_blocks(const StepSequence& sequence, int64_t first_position, int64_t last_position) {
  if (!require(sequence.block_tables.size() >= groups_.size(), "a K/V group has no block table")) return false;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const KvGroupConfig& config = groups_[g].cache.config();
    const std::vector<int32_t>& table = sequence.block_tables[g];
    const int64_t end = last_position / kBlockTokens + 1;
    if (!require(static_cast<int64_t>(table.size()) >= end, "a block table is too short")) return false;
    for (int64_t i = first_key(first_position, config.window) / kBlockTokens; i < end; ++i) {
      const int32_t block = table[static_cast<size_t>(i)];
      if (!require(block >= 0 && block < config.n_blocks, "a block id is out of range")) return false;
    }
    for (int64_t i = 0; i < sequence.n_rows; ++i) groups_[g].blocks.push_back(table.data());
  }
  return true;
}

void CpuBackend::begin_step(const Step& step) {
  step_ = &step;
  mistake_ = nullptr;
  program_.clear();
  for (TensorState& tensor : tensors_) {
    tensor.set = RowSet::kAll;
    tensor.is_prepared = tensor.is_rounded = false;
  }
  for (GroupState& group : groups_) {
    group.blocks.clear();
    group.splits_built = false;
    const int64_t missing = group.partials_wanted - static_cast<int64_t>(group.partials.size());
    if (missing > 0) {
      memory_.activation_bytes += missing * static_cast<int64_t>(sizeof(float));
      group.partials.resize(static_cast<size_t>(group.partials_wanted));
    }
  }
  for (RopeTable& table : rope_tables_) table.recorded = false;
  logit_rows_.clear();
  for (size_t i = 0; i < step.rows.size(); ++i) {
    if (step.rows[i].wants_logits) logit_rows_.push_back(static_cast<int32_t>(i));
  }
  check_step(step);
  if (mistake_ == nullptr) build_items(step, items_, item_of_row_);
}

void CpuBackend::embed(Matrix table, float scale, Tensor out) {
  TensorState& tensor = at(out);
  const PackedMatrix& matrix = at(table);
  if (!writes(tensor, RowSet::kAll)) return;
  if (!require(packed_cols(matrix) == tensor.rows.cols, "embedding width differs from its tensor")) return;
  for (const Row& row : step_->rows) {
    if (!require(row.value >= 0 && row.value < packed_rows(matrix), "a token id is outside the vocabulary")) return;
  }
  add_stage(RowSet::kAll, run_embed, EmbedStage{kernels_, &matrix, step_->rows.data(), scale, tensor.rows},
            kActivateCost * static_cast<double>(tensor.rows.cols));
}

void CpuBackend::add_position_embedding(Matrix table, Tensor inout) {
  TensorState& tensor = at(inout);
  const PackedMatrix& matrix = at(table);
  if (!writes(tensor, RowSet::kAll)) return;
  if (!require(packed_cols(matrix) == tensor.rows.cols, "embedding width differs from its tensor")) return;
  for (const Row& row : step_->rows) {
    if (!require(row.position[0] < packed_rows(matrix), "a position is beyond the learned ones")) return;
  }
  add_stage(RowSet::kAll, run_position,
            PositionStage{kernels_, &matrix, step_->rows.data(), tensor.rows, row_scratch_.get(), row_scratch_stride_},
            kActivateCost * static_cast<double>(tensor.rows.cols));
}

NormArguments CpuBackend::norm_arguments(const NormParams& params, int64_t cols) const {
  NormArguments arguments;
  arguments.kind = params.kind;
  arguments.eps = params.eps;
  arguments.weight = values_of(params.weight);
  arguments.bias = values_of(params.bias);
  arguments.cols = cols;
  arguments.group = params.group > 0 ? params.group : cols;
  const Vector any = params.weight ? params.weight : params.bias;
  arguments.weight_per_column = any && static_cast<int64_t>(at(any).size()) == cols;
  return arguments;
}

void CpuBackend::norm(Tensor in, const NormParams& params, Tensor out) {
  const TensorState& source = at(in);
  TensorState& target = at(out);
  const RowSet set = source.set;
  if (!writes(target, set)) return;
  const NormArguments arguments = norm_arguments(params, source.rows.cols);
  const auto fits = [&](Vector vector) {
    if (!vector) return true;
    const auto size = static_cast<int64_t>(at(vector).size());
    return size == arguments.cols || size == arguments.group;
  };
  if (!require(source.rows.cols == target.rows.cols && arguments.cols % arguments.group == 0 && fits(params.weight) &&
                   fits(params.bias),
               "a norm does not fit its tensor")) {
    return;
  }
  add_stage(set, run_norm, NormStage{kernels_, arguments, source.rows, target.rows},
            kNormCost * static_cast<double>(arguments.cols));
}

// Records the preparation of the tensor's rows for products unless that was done since it was last written.
bool CpuBackend::ensure_prepared(TensorState& tensor) {
  const auto bytes = static_cast<int64_t>(prepared_row_bytes(config_.compute, tensor.rows.cols));
  if (bytes == 0 || tensor.is_prepared) return true;
  if (tensor.prepared == nullptr) {
    tensor.prepared = make_aligned<std::byte>(static_cast<size_t>(bytes * tensor.max_rows));
    if (!require(tensor.prepared != nullptr, "no memory for prepared rows")) return false;
    tensor.prepared_stride = bytes;
    memory_.activation_bytes += bytes * tensor.max_rows;
  }
  add_stage(tensor.set, run_prepare,
            PrepareStage{config_.isa, config_.compute, tensor.rows, tensor.prepared.get(), bytes},
            kPrepareCost * static_cast<double>(tensor.rows.cols));
  tensor.is_prepared = true;
  return true;
}

// The same for the rows that float matrices read at i8.
bool CpuBackend::ensure_rounded(TensorState& tensor) {
  if (tensor.is_rounded) return true;
  if (tensor.rounded == nullptr) {
    const int64_t count = tensor.rows.stride * tensor.max_rows;
    tensor.rounded = make_aligned<float>(static_cast<size_t>(count));
    if (!require(tensor.rounded != nullptr, "no memory for rounded rows")) return false;
    memory_.activation_bytes += count * static_cast<int64_t>(sizeof(float));
  }
  const Rows out = {tensor.rounded.get(), tensor.rows.stride, tensor.rows.cols};
  add_stage(tensor.set, run_round, RoundStage{config_.isa, tensor.rows, out},
            kPrepareCost * static_cast<double>(tensor.rows.cols));
  tensor.is_rounded = true;
  return true;
}

void CpuBackend::linear(Tensor in, std::span<const LinearOutput> outputs) {
  TensorState& source = at(in);
  const RowSet set = source.set;
  const int64_t n_rows = rows_in(set);
  const std::span<LinearPart> parts = program_.arena().make_array<LinearPart>(outputs.size());
  bool needs_prepared = false, needs_rounded = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PackedMatrix& matrix = at(outputs[i].matrix);
    TensorState& target = at(outputs[i].out);
    if (!writes(target, set)) return;
    if (!require(packed_cols(matrix) == source.rows.cols && packed_rows(matrix) == target.rows.cols,
                 "a product's shapes do not fit")) {
      return;
    }
    if (!require(!outputs[i].bias || static_cast<int64_t>(at(outputs[i].bias).size()) == target.rows.cols,
                 "a bias does not fit its product")) {
      return;
    }
    parts[i] = {&matrix, values_of(outputs[i].bias), target.rows, 0};
    needs_prepared = needs_prepared || !packed_is_float(matrix);
    // Other arithmetics read float matrices' inputs as they are.
    needs_rounded = needs_rounded || (packed_is_float(matrix) && config_.compute == Compute::kI8);
  }
  if (n_rows == 0) return;
  if (needs_prepared && !ensure_prepared(source)) return;
  if (needs_rounded && !ensure_rounded(source)) return;
  LinearOperation operation;
  operation.isa = config_.isa;
  operation.compute = config_.compute;
  operation.input = {source.rows.data, source.rows.stride, source.prepared.get(), source.rounded.get(), n_rows};
  operation.prepared_stride = source.prepared_stride;
  operation.parts = parts;
  operation.scratch = matmul_scratch_.get();
  operation.scratch_stride = matmul_scratch_stride_;
  operation.results = linear_results_.get();
  plan_linear(operation, pool_->threads());
  program_.add({run_linear, program_.arena().make(operation), operation.n_chunks(),
                operation.results != nullptr ? publish_linear : nullptr});
}

// The table of a rope's cosines and sines, recorded at its first use in a step; null without memory.
const float* CpuBackend::rope_table(const RopeParams& rope) {
  const auto known = std::find_if(rope_tables_.begin(), rope_tables_.end(), [&](const RopeTable& t) {
    return t.vector == rope.inverse_frequencies.id && t.rotary_dim == rope.rotary_dim && t.scale == rope.scale;
  });
  RopeTable& table = known != rope_tables_.end() ? *known : rope_tables_.emplace_back();
  if (table.recorded) return table.values.data();
  table.vector = rope.inverse_frequencies.id;
  table.rotary_dim = rope.rotary_dim;
  table.scale = rope.scale;
  table.recorded = true;
  const size_t needed = step_->rows.size() * static_cast<size_t>(rope.rotary_dim);
  if (table.values.size() < needed) table.values.resize(needed);
  const int64_t half = rope.rotary_dim / 2;
  add_stage(
      RowSet::kAll, run_rope_table,
      RopeTableStage{step_->rows.data(), values_of(rope.inverse_frequencies), half, rope.scale, table.values.data()},
      kSinCosCost * static_cast<double>(half));
  return table.values.data();
}

void CpuBackend::attention_inputs(const AttentionInputParams& params) {
  GroupState& group = at(params.group);
  const KvGroupConfig& config = group.cache.config();
  TensorState& q = at(params.q);
  TensorState& k = at(params.k);
  TensorState& v = at(params.v);
  if (!writes(q, RowSet::kAll) || !writes(k, RowSet::kAll) || !writes(v, RowSet::kAll)) return;
  if (!require(q.rows.cols == int64_t{params.n_heads} * config.head_dim &&
                   k.rows.cols == int64_t{config.n_kv_heads} * config.head_dim &&
                   v.rows.cols == int64_t{config.n_kv_heads} * config.value_dim && params.layer < config.n_layers,
               "attention inputs do not fit their K/V group")) {
    return;
  }
  AttentionInputStage stage{};
  stage.rope_kind = params.rope.rotary_dim > 0 ? params.rope.kind : RopeKind::kNone;
  if (stage.rope_kind != RopeKind::kNone) {
    if (!require(params.rope.rotary_dim <= config.head_dim && params.rope.rotary_dim % 2 == 0 &&
                     static_cast<int>(at(params.rope.inverse_frequencies).size()) >= params.rope.rotary_dim / 2,
                 "a rope does not fit its heads")) {
      return;
    }
    stage.rotary_dim = params.rope.rotary_dim;
    stage.rope_table = rope_table(params.rope);
  }
  stage.kernels = kernels_;
  stage.rows = step_->rows.data();
  stage.q = q.rows;
  stage.k = k.rows;
  stage.v = v.rows;
  stage.n_heads = params.n_heads;
  stage.n_kv_heads = config.n_kv_heads;
  stage.layer = group.cache.layer(params.layer);
  stage.blocks = group.blocks.data();
  stage.has_q_norm = params.q_norm.has_value();
  stage.has_k_norm = params.k_norm.has_value();
  stage.norm_after_rope = params.norm_after_rope;
  if (stage.has_q_norm) stage.q_norm = norm_arguments(*params.q_norm, q.rows.cols);
  if (stage.has_k_norm) stage.k_norm = norm_arguments(*params.k_norm, k.rows.cols);
  stage.query_scale = params.query_scale;
  stage.clip = params.clip;
  add_stage(RowSet::kAll, run_attention_input, stage,
            (kRopeCost + kStoreCost) * static_cast<double>(k.rows.cols + v.rows.cols) +
                kRopeCost * static_cast<double>(q.rows.cols));
}

// Whether each split gets chunks of its own: where the items alone would leave threads idle.
bool CpuBackend::use_splits(GroupState& group, int n_heads) {
  const KvGroupConfig& config = group.cache.config();
  if (static_cast<int64_t>(items_.size()) * config.n_kv_heads >= 4 * pool_->threads()) return false;
  if (!group.splits_built) {
    build_splits(items_, config.window, group.splits);
    group.splits_built = true;
  }
  if (group.splits.slots.size() <= items_.size()) return false;
  const int64_t floats = attention_partial_floats(group.splits, n_heads, group.cache.layer(0).value_stride);
  if (floats * 4 > kMostPartialBytes) return false;
  if (static_cast<int64_t>(group.partials.size()) < floats) {
    group.partials_wanted = floats * 3 / 2;
    return false;
  }
  return true;
}

void CpuBackend::attention(const AttentionParams& params) {
  GroupState& group = at(params.group);
  const KvGroupConfig& config = group.cache.config();
  const TensorState& q = at(params.q);
  TensorState& out = at(params.out);
  if (!writes(out, RowSet::kAll)) return;
  if (!require(params.n_heads > 0 && params.n_heads % config.n_kv_heads == 0 &&
                   q.rows.cols == int64_t{params.n_heads} * config.head_dim &&
                   out.rows.cols == int64_t{params.n_heads} * config.value_dim && params.layer < config.n_layers,
               "attention does not fit its K/V group")) {
    return;
  }
  if (step_->rows.empty()) return;
  AttentionOperation operation;
  operation.kernels = kernels_;
  operation.layer = group.cache.layer(params.layer);
  operation.q = q.rows;
  operation.out = out.rows;
  operation.n_heads = params.n_heads;
  operation.n_kv_heads = config.n_kv_heads;
  operation.window = config.window;
  operation.scale = params.scale;
  operation.softcap = params.softcap;
  operation.items = items_.data();
  operation.n_items = static_cast<int64_t>(items_.size());
  operation.item_of_row = item_of_row_.data();
  operation.blocks = group.blocks.data();
  operation.scratch = attention_scratch_.get();
  operation.scratch_stride = attention_scratch_stride_;
  if (use_splits(group, params.n_heads)) {
    operation.splits = &group.splits;
    operation.partials = group.partials.data();
    operation.publishes = attention_may_publish(operation);
    const AttentionOperation* kept = program_.arena().make(operation);
    program_.add({run_attention_slots, kept, attention_slot_chunks(operation),
                  operation.publishes ? publish_attention_slots : nullptr});
    program_.add_rows(RowSet::kAll, rows_in(RowSet::kAll), run_attention_merge, kept,
                      kActivateCost * static_cast<double>(out.rows.cols));
  } else {
    program_.add({run_attention_items, program_.arena().make(operation), attention_item_chunks(operation)});
  }
}

void CpuBackend::activate(Activation kind, const ActivationParams& params, Tensor inout) {
  TensorState& tensor = at(inout);
  const RowSet set = tensor.set;
  if (!writes(tensor, set)) return;
  add_stage(set, run_activate, ActivateStage{kernels_, kind, params, tensor.rows},
            kActivateCost * static_cast<double>(tensor.rows.cols));
}

void CpuBackend::gated_activation(Activation kind, Tensor gate, Tensor up, Tensor out) {
  const TensorState& g = at(gate);
  const TensorState& u = at(up);
  TensorState& target = at(out);
  const RowSet set = g.set;
  if (!writes(target, set)) return;
  if (!require(g.rows.cols == target.rows.cols && u.rows.cols == target.rows.cols, "gate and up differ in width")) {
    return;
  }
  add_stage(set, run_gated, GatedStage{kernels_, kind, g.rows, u.rows, target.rows},
            kActivateCost * static_cast<double>(target.rows.cols));
}

void CpuBackend::add_scaled(Tensor inout, float scale, Tensor addend) {
  TensorState& tensor = at(inout);
  const TensorState& other = at(addend);
  const RowSet set = tensor.set;
  if (!writes(tensor, set)) return;
  if (!require(tensor.rows.cols == other.rows.cols, "a sum's widths differ")) return;
  add_stage(set, run_add, AddStage{kernels_, scale, tensor.rows, other.rows},
            kMoveCost * static_cast<double>(tensor.rows.cols));
}

void CpuBackend::copy(Tensor in, Tensor out) {
  const TensorState& source = at(in);
  TensorState& target = at(out);
  const RowSet set = source.set;
  if (!writes(target, set)) return;
  if (!require(source.rows.cols == target.rows.cols, "a copy's widths differ")) return;
  add_stage(set, run_copy, CopyStage{nullptr, source.rows, target.rows},
            kMoveCost * static_cast<double>(target.rows.cols));
}

void CpuBackend::gather_logit_rows(Tensor in, Tensor out) {
  const TensorState& source = at(in);
  TensorState& target = at(out);
  if (!writes(target, RowSet::kLogits)) return;
  if (!require(source.rows.cols == target.rows.cols && in.id != out.id, "a gather's tensors do not fit")) return;
  add_stage(RowSet::kLogits, run_copy, CopyStage{logit_rows_.data(), source.rows, target.rows},
            kMoveCost * static_cast<double>(target.rows.cols));
}

void CpuBackend::finish_logits(Tensor logits, float scale, float softcap) {
  TensorState& tensor = at(logits);
  const RowSet set = tensor.set;
  if (scale == 1.0f && !(softcap > 0)) return;
  if (!writes(tensor, set)) return;
  FinishOperation operation{kernels_, scale, softcap, tensor.rows, rows_in(set)};
  program_.add({run_finish, program_.arena().make(operation), operation.n_chunks()});
}

Status CpuBackend::end_step() {
  if (mistake_ != nullptr) return internal_error("", "CPU back end: {}; the step was not run", mistake_);
  pool_->execute(program_.operations());
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuConfig& config) {
  constexpr int kMostThreads = 1024;
  if (config.threads < 1 || config.threads > kMostThreads) {
    return invalid_request("--threads", "threads: expected 1 to {}, found {}", kMostThreads, config.threads);
  }
  const std::vector<Isa> available = available_isas();
  if (std::find(available.begin(), available.end(), config.isa) == available.end()) {
    return unsupported("", "this machine cannot run {} code; choose another instruction set", to_string(config.isa));
  }
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(config));
}

}  // namespace vedette::ops::cpu
