#include "ops/cpu/program_stages.h"

#include <cmath>
#include <cstring>

#include "ops/cpu/math_scalar.h"

namespace vedette::ops::cpu {
namespace {

template <typename Stage>
const Stage& as(const void* arguments) {
  return *static_cast<const Stage*>(arguments);
}

}  // namespace

void run_embed(const void* arguments, int64_t row, int) {
  const auto& s = as<EmbedStage>(arguments);
  gather_row(*s.table, s.rows[row].value, s.out.row(row));
  if (s.scale != 1.0f) s.kernels->scale(s.out.row(row), s.scale, s.out.cols);
}

void run_position(const void* arguments, int64_t row, int thread) {
  const auto& s = as<PositionStage>(arguments);
  float* scratch = s.scratch + thread * s.scratch_stride;
  gather_row(*s.table, s.rows[row].position[0], scratch);
  s.kernels->add_scaled(s.inout.row(row), 1.0f, scratch, s.inout.cols);
}

void run_norm(const void* arguments, int64_t row, int) {
  const auto& s = as<NormStage>(arguments);
  s.kernels->norm(s.norm, s.in.row(row), s.out.row(row));
}

void run_prepare(const void* arguments, int64_t row, int) {
  const auto& s = as<PrepareStage>(arguments);
  prepare_row(s.isa, s.compute, s.in.row(row), s.in.cols, s.prepared + row * s.prepared_stride);
}

void run_round(const void* arguments, int64_t row, int) {
  const auto& s = as<RoundStage>(arguments);
  round_row(s.isa, s.in.row(row), s.in.cols, s.out.row(row));
}

void run_activate(const void* arguments, int64_t row, int) {
  const auto& s = as<ActivateStage>(arguments);
  s.kernels->activate(s.kind, s.params, s.inout.row(row), s.inout.row(row), s.inout.cols);
}

void run_gated(const void* arguments, int64_t row, int) {
  const auto& s = as<GatedStage>(arguments);
  s.kernels->gated_activation(s.kind, s.gate.row(row), s.up.row(row), s.out.row(row), s.out.cols);
}

void run_add(const void* arguments, int64_t row, int) {
  const auto& s = as<AddStage>(arguments);
  s.kernels->add_scaled(s.inout.row(row), s.scale, s.addend.row(row), s.inout.cols);
}

void run_copy(const void* arguments, int64_t row, int) {
  const auto& s = as<CopyStage>(arguments);
  const int64_t source = s.sources != nullptr ? s.sources[row] : row;
  std::memcpy(s.out.row(row), s.in.row(source), sizeof(float) * static_cast<size_t>(s.out.cols));
}

void run_rope_table(const void* arguments, int64_t row, int) {
  const auto& s = as<RopeTableStage>(arguments);
  const float position = static_cast<float>(s.rows[row].position[0]);
  float* cos = s.table + row * 2 * s.half;
  float* sin = cos + s.half;
  for (int64_t i = 0; i < s.half; ++i) {
    const SinCos angle = sin_cos(position * s.inverse_frequencies[i]);
    cos[i] = angle.cos * s.scale;
    sin[i] = angle.sin * s.scale;
  }
}

float query_scale_at(const QueryScaleParams& params, int64_t position) {
  const float periods = std::floor(static_cast<float>(position) / params.original_context);
  if (!(periods >= 0)) return 1.0f;
  return 1.0f + params.beta * static_cast<float>(natural_log(1.0 + static_cast<double>(periods)));
}

void run_attention_input(const void* arguments, int64_t row, int) {
  const auto& s = as<AttentionInputStage>(arguments);
  const Kernels& kernels = *s.kernels;
  float* q = s.q.row(row);
  float* k = s.k.row(row);
  float* v = s.v.row(row);
  const int64_t position = s.rows[row].position[0];
  if (s.clip > 0) {
    kernels.clip(q, s.clip, s.q.cols);
    kernels.clip(k, s.clip, s.k.cols);
    kernels.clip(v, s.clip, s.v.cols);
  }
  const auto normalize = [&] {
    if (s.has_q_norm) kernels.norm(s.q_norm, q, q);
    if (s.has_k_norm) kernels.norm(s.k_norm, k, k);
  };
  if (!s.norm_after_rope) normalize();
  if (s.rope_kind != RopeKind::kNone) {
    const int64_t half = s.rotary_dim / 2;
    const float* cos = s.rope_table + row * 2 * half;
    const RopeArguments rope{s.rope_kind, s.rotary_dim, cos, cos + half};
    kernels.rope(rope, q, s.n_heads, s.layer.head_dim);
    kernels.rope(rope, k, s.n_kv_heads, s.layer.head_dim);
  }
  if (s.norm_after_rope) normalize();
  if (s.query_scale.beta != 0) kernels.scale(q, query_scale_at(s.query_scale, position), s.q.cols);
  const int32_t block = s.blocks[row][position / kBlockTokens];
  for (int head = 0; head < s.n_kv_heads; ++head) {
    kernels.store_kv(s.layer, block, head, static_cast<int>(position % kBlockTokens), k + head * s.layer.head_dim,
                     v + head * s.layer.value_dim);
  }
}

}  // namespace vedette::ops::cpu
