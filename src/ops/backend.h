// The back-end seam: operations on opaque device tensors. ops/cpu implements it; the Decoder knows nothing else.
//
// Use: load matrices and vectors, create K/V groups, allocate activation tensors; then per step
// begin_step, the operations in order, end_step. Operations between begin_step and end_step are
// recorded; end_step runs them and waits. Nothing is allocated per step once sizes are known.
//
// Row invariance: the value computed for a row depends only on that sequence's rows at or before it,
// never on how many rows the step has, on the thread count or on the instruction set (docs/architecture.md).
//
// Thread: one owner (the engine thread) calls everything. Contract violations by the caller (a wrong
// handle, a shape that does not fit) are our own mistakes; whatever depends on a checkpoint returns Status.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "ops/step.h"
#include "ops/types.h"

namespace vedette::ops {

// Handles; -1 is "none". Valid for the life of the back end that made them.
struct Matrix {
  int32_t id = -1;
  explicit operator bool() const { return id >= 0; }
};  // [rows, cols] weights
struct Vector {
  int32_t id = -1;
  explicit operator bool() const { return id >= 0; }
};  // float32 [n]
struct Tensor {
  int32_t id = -1;
  explicit operator bool() const { return id >= 0; }
};  // float32 activations [max_rows, cols]
struct KvGroup {
  int32_t id = -1;
  explicit operator bool() const { return id >= 0; }
};

struct KvGroupConfig {
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;   // of keys
  int value_dim = 0;  // of values
  DType type = DType::kF16;
  int window = 0;        // sliding window in tokens; 0 = full attention
  int64_t n_blocks = 0;  // of kBlockTokens tokens each, every layer included
};

struct NormParams {
  NormKind kind = NormKind::kRms;
  float eps = 1e-6f;
  Vector weight;  // none: not scaled. Any "1 + weight" rule is applied when loading
  Vector bias;
  int group = 0;  // 0: the norm runs over the whole row; else over each run of `group` columns
                  // (per-head norms). weight has `group` elements, or one per column.
};

struct LinearOutput {
  Matrix matrix;
  Vector bias;  // optional, added after the product
  Tensor out;
};

struct RopeParams {
  RopeKind kind = RopeKind::kNone;
  int rotary_dim = 0;          // leading columns of each head that turn
  Vector inverse_frequencies;  // [rotary_dim / 2]
  float scale = 1.0f;          // cos and sin are multiplied by it (YaRN)
};

// Queries scaled by 1 + beta * ln(1 + floor(position / original_context)) (Llama 4, Ministral 3); beta 0: off.
struct QueryScaleParams {
  float beta = 0;
  float original_context = 0;
};

// Prepares one layer's attention inputs in place: optional norms of q and k, rope, then k and v go to the
// cache at each row's position. q [rows, n_heads * head_dim], k [rows, n_kv_heads * head_dim], v [.., value_dim].
struct AttentionInputParams {
  Tensor q, k, v;
  int n_heads = 0;
  KvGroup group;
  int layer = 0;  // index inside the group
  std::optional<NormParams> q_norm, k_norm;
  bool norm_after_rope = false;
  RopeParams rope;
  QueryScaleParams query_scale;
  float clip = 0;  // clamp q, k, v to +-clip before all else; 0: off
};

// softmax(scale * q k^T, soft-capped, causal, windowed) v. out [rows, n_heads * value_dim].
// Window W: position p sees keys in (p - W, p].
struct AttentionParams {
  Tensor q, out;
  int n_heads = 0;
  KvGroup group;
  int layer = 0;
  float scale = 1.0f;
  float softcap = 0;  // s <- cap * tanh(s / cap); 0: off
};

struct BackendInfo {
  std::string device;  // "cpu"
  std::string isa;     // "portable", "avx2", "avx512", ...
  int threads = 1;
  Compute compute = Compute::kI8;
};

struct MemoryUse {
  int64_t weight_bytes = 0;  // owned by the back end (re-packed)
  int64_t mapped_bytes = 0;  // weights used in place
  int64_t kv_bytes = 0;
  int64_t activation_bytes = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const BackendInfo& info() const = 0;
  virtual MemoryUse memory() const = 0;

  // Load time.
  virtual Result<Matrix> load_matrix(const HostMatrix& matrix) = 0;
  virtual Result<Vector> load_vector(std::span<const float> values) = 0;
  virtual Result<KvGroup> create_kv_group(const KvGroupConfig& config) = 0;
  virtual Result<Tensor> create_tensor(int64_t max_rows, int64_t cols) = 0;

  // Step. All row operations cover every row of the step unless they say otherwise. `step` must live, unchanged,
  // until end_step returns.
  virtual void begin_step(const Step& step) = 0;
  virtual void embed(Matrix table, float scale, Tensor out) = 0;              // rows' token ids
  virtual void add_position_embedding(Matrix table, Tensor inout) = 0;        // rows' positions
  virtual void norm(Tensor in, const NormParams& params, Tensor out) = 0;     // in may be out
  virtual void linear(Tensor in, std::span<const LinearOutput> outputs) = 0;  // out = in * matrix^T + bias
  virtual void attention_inputs(const AttentionInputParams& params) = 0;
  virtual void attention(const AttentionParams& params) = 0;
  virtual void activate(Activation kind, const ActivationParams& params, Tensor inout) = 0;
  virtual void gated_activation(Activation kind, Tensor gate, Tensor up,
                                Tensor out) = 0;                          // act(gate) * up; out may be either
  virtual void add_scaled(Tensor inout, float scale, Tensor addend) = 0;  // inout += scale * addend
  virtual void copy(Tensor in, Tensor out) = 0;
  virtual void gather_logit_rows(Tensor in, Tensor out) = 0;  // rows that want logits, in order; later operations
                                                              // on `out` cover just these
  virtual void finish_logits(Tensor logits, float scale, float softcap) = 0;  // x*scale, then cap*tanh(x/cap)
  // Runs what was recorded. An error ends the sequences concerned, not the process.
  virtual Status end_step() = 0;

  // Host copy of a tensor's row, valid until the next begin_step.
  virtual std::span<const float> host_row(Tensor tensor, int64_t row) const = 0;
};

}  // namespace vedette::ops
