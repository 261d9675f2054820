// A model is data: what a family file builds from config.json, and what the one Decoder runs.
//
// A layer is a list of parts applied to a working row x and a residual stream h; at the layer's start x = h.
//   Norm           x = norm(x)
//   Attention      x = attention(x)
//   Mlp            x = mlp(x)
//   Residual       h = h + scale * x;  x = h
//   ParallelBlock  h = h + scale * (attention(na(h)) + mlp(nm(h)));  x = h
// A family file never runs anything, and the Decoder never compares a family's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ops/types.h"

namespace vedette::models {

// Some or all outputs of a stored tensor (fused q/k/v, per-head orders). The bias is indexed alike.
struct LinearSpec {
  std::string weight;  // tensor name
  std::string bias;    // tensor name, empty: none
  int64_t out_features = 0;
  int64_t in_features = 0;
  int64_t stored_features = 0;  // outputs of the stored tensor; 0: out_features
  int64_t first_row = 0;        // where `rows` is empty: outputs are first_row .. first_row + out_features
  std::vector<uint32_t> rows;   // else logical output r is stored output rows[r]
  bool transposed = false;      // stored [in, out]

  int64_t stored_rows() const { return stored_features ? stored_features : out_features; }
  // The stored output of logical output r.
  int64_t stored_row(int64_t r) const { return rows.empty() ? first_row + r : rows[static_cast<size_t>(r)]; }
};

struct NormSpec {
  ops::NormKind kind = ops::NormKind::kRms;
  std::string weight;                     // empty: no scale
  std::vector<std::string> weight_parts;  // instead of weight: tensors of `group` elements, joined in order
  std::string bias;                       // empty: none
  float eps = 1e-6f;
  float weight_offset = 0;  // Gemma, Nemotron: 1
  int64_t size = 0;         // elements of weight; more than `group`: stored as [size / group, group]
  int group = 0;            // see ops::NormParams::group
};

struct RopeSpec {
  ops::RopeKind kind = ops::RopeKind::kNone;
  int rotary_dim = 0;
  std::vector<float> inverse_frequencies;  // [rotary_dim / 2], float32 arithmetic as the reference does it
  float scale = 1.0f;                      // on cos and sin (YaRN attention factor)
};

struct AttentionSpec {
  LinearSpec q, k, v, o;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int value_dim = 0;
  float scale = 1.0f;  // on q.k
  float softcap = 0;
  int window = 0;  // tokens; 0 = full
  std::optional<NormSpec> q_norm, k_norm;
  bool norm_after_rope = false;
  RopeSpec rope;
  float query_scale_beta = 0;  // ops::QueryScaleParams
  float query_scale_context = 0;
  float clip_qkv = 0;
};

struct MlpSpec {
  std::optional<LinearSpec> gate;  // none: plain up -> act -> down
  LinearSpec up, down;
  ops::Activation activation = ops::Activation::kSilu;
  std::string activation_tensors;  // kXielu: prefix of alpha_p, alpha_n, beta, eps (see WeightLoader);
                                   // empty otherwise
};

struct ResidualSpec {
  float scale = 1.0f;
};

struct ParallelBlockSpec {
  std::optional<NormSpec> attention_norm;
  std::optional<NormSpec> mlp_norm;  // none: the feed-forward sees the attention's input
  AttentionSpec attention;
  MlpSpec mlp;
  float scale = 1.0f;
};

using Part = std::variant<NormSpec, AttentionSpec, MlpSpec, ResidualSpec, ParallelBlockSpec>;

struct LayerSpec {
  std::vector<Part> parts;
};

struct DecoderSpec {
  std::string family;  // registry id, for messages only
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t context_length = 0;  // trained limit in tokens
  std::string embedding;       // tensor name [vocab, hidden]
  float embedding_scale = 1.0f;
  std::string position_embedding;  // learned positions, empty: none
  std::vector<LayerSpec> layers;
  std::optional<NormSpec> final_norm;
  LinearSpec head;  // weight = embedding's name where tied
  float logit_scale = 1.0f;
  float logit_softcap = 0;
  bool f16_kv_overflows = false;              // K/V default to bf16
  std::vector<std::string> ignored_tensors;   // name suffixes that may be there and are not used (rotary tables)
  std::vector<std::string> ignored_prefixes;  // name prefixes likewise (the vision tower beside a text model)
};

// Every tensor name a spec reads, with its expected shape; used to report missing and surplus tensors
// by name before anything is loaded.
struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<ExpectedTensor> expected_tensors(const DecoderSpec& spec);

}  // namespace vedette::models
