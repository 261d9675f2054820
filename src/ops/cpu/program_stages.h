// Stages of row operations: argument records and what runs them on one row (program.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ops/backend.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/matmul.h"
#include "ops/step.h"

namespace vedette::ops::cpu {

// A tensor's rows: row r begins at data + r * stride.
struct Rows {
  float* data = nullptr;
  int64_t stride = 0;
  int64_t cols = 0;
  float* row(int64_t r) const { return data + r * stride; }
};

struct EmbedStage {
  const Kernels* kernels;
  const PackedMatrix* table;
  const Row* rows;
  float scale;
  Rows out;
};
void run_embed(const void* arguments, int64_t row, int thread);

struct PositionStage {
  const Kernels* kernels;
  const PackedMatrix* table;
  const Row* rows;
  Rows inout;
  float* scratch;  // per thread
  int64_t scratch_stride;
};
void run_position(const void* arguments, int64_t row, int thread);

struct NormStage {
  const Kernels* kernels;
  NormArguments norm;
  Rows in, out;
};
void run_norm(const void* arguments, int64_t row, int thread);

struct PrepareStage {
  Isa isa;
  Compute compute;
  Rows in;
  std::byte* prepared;
  int64_t prepared_stride;
};
void run_prepare(const void* arguments, int64_t row, int thread);

struct RoundStage {
  Isa isa;
  Rows in, out;
};
void run_round(const void* arguments, int64_t row, int thread);

struct ActivateStage {
  const Kernels* kernels;
  Activation kind;
  ActivationParams params;
  Rows inout;
};
void run_activate(const void* arguments, int64_t row, int thread);

struct GatedStage {
  const Kernels* kernels;
  Activation kind;
  Rows gate, up, out;
};
void run_gated(const void* arguments, int64_t row, int thread);

struct AddStage {
  const Kernels* kernels;
  float scale;
  Rows inout, addend;
};
void run_add(const void* arguments, int64_t row, int thread);

// Copies row sources[r] (r itself where null) of in to row r of out.
struct CopyStage {
  const int32_t* sources;
  Rows in, out;
};
void run_copy(const void* arguments, int64_t row, int thread);

// cos and sin of every row's position: table row r holds rotary_dim / 2 cosines, then as many sines.
struct RopeTableStage {
  const Row* rows;
  const float* inverse_frequencies;
  int64_t half;
  float scale;
  float* table;
};
void run_rope_table(const void* arguments, int64_t row, int thread);

struct AttentionInputStage {
  const Kernels* kernels;
  const Row* rows;
  Rows q, k, v;
  int n_heads, n_kv_heads;
  KvLayer layer;
  const int32_t* const* blocks;  // per row: its sequence's block table of this group
  bool has_q_norm, has_k_norm, norm_after_rope;
  NormArguments q_norm, k_norm;
  RopeKind rope_kind;
  int rotary_dim;
  const float* rope_table;  // see RopeTableStage
  QueryScaleParams query_scale;
  float clip;
};
void run_attention_input(const void* arguments, int64_t row, int thread);

// 1 + beta ln(1 + floor(position / original_context)).
float query_scale_at(const QueryScaleParams& params, int64_t position);

}  // namespace vedette::ops::cpu
