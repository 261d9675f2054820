// Common parts that family files are built from: what nearly every dense config says, linears, norms, attention,
// feed-forwards and the usual layer shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config_reader.h"
#include "models/rope.h"
#include "models/spec.h"

namespace vedette::models {

// Class defaults: what a missing key means.
struct DenseDefaults {
  int64_t vocab = 32000;
  int64_t hidden = 4096;
  int64_t intermediate = 11008;
  int64_t layers = 32;
  int64_t heads = 32;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t context = 2048;
  std::string_view eps_key = "rms_norm_eps";
  double eps = 1e-6;
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
};

// Sizes within limits (so products of two cannot overflow), heads that divide.
struct Dense {
  int64_t vocab = 0, hidden = 0, intermediate = 0, layers = 0, context = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  float eps = 0;
  ops::Activation activation = ops::Activation::kSilu;
  std::string prefix;  // of the text model's tensors: "model."
  std::string head;    // "lm_head"
  std::string layer(int64_t i) const { return prefix + "layers." + std::to_string(i) + "."; }
};

// Reads the usual keys and finds the tensor prefix (language models inside multimodal checkpoints have another).
Dense read_dense(ConfigReader& config, const DenseDefaults& defaults);

// Size limits by themselves, for families with keys of their own.
int64_t read_size(ConfigReader& config, std::string_view key, int64_t max, std::optional<int64_t> fallback);
inline constexpr int64_t kMaxVocab = 1 << 24;
inline constexpr int64_t kMaxHidden = 1 << 16;
inline constexpr int64_t kMaxIntermediate = 1 << 20;
inline constexpr int64_t kMaxLayers = 512;
inline constexpr int64_t kMaxHeads = 1024;
inline constexpr int64_t kMaxHeadDim = 1024;
inline constexpr int64_t kMaxContext = 1 << 28;
// Head counts that divide, and a head size.
void check_heads(ConfigReader& config, Dense& dense);

// Embedding, head (tied or stored; a stored one wins) and sizes. Layers and final norm follow.
DecoderSpec start_spec(ConfigReader& config, const Dense& dense, bool tied_by_default);

LinearSpec linear(const std::string& base, int64_t out, int64_t in, bool bias = false);
// `count` outputs from `first` of a stored tensor with `stored` outputs.
LinearSpec linear_slice(const std::string& base, int64_t stored, int64_t first, int64_t count, int64_t in,
                        bool bias = false);

NormSpec rms_norm(const std::string& base, int64_t size, float eps);
NormSpec layer_norm(const std::string& base, int64_t size, float eps, bool bias);
// Over each head of head_dim elements, one weight vector for all heads.
NormSpec head_norm(const std::string& base, const Dense& dense);
// Gemma: x * (1 + weight).
NormSpec offset_rms_norm(const std::string& base, int64_t size, float eps);

struct AttentionBias {
  bool qkv = false;
  bool output = false;
};
// q_proj, k_proj, v_proj, o_proj under `base`; scale head_dim^-1/2, no rope.
AttentionSpec attention(const Dense& dense, const std::string& base, AttentionBias bias = {});
// Sizes and scale only, for fused projections.
AttentionSpec attention_sizes(const Dense& dense);
// q, k and v one after the other in one tensor.
AttentionSpec fused_attention(const Dense& dense, const std::string& fused, const std::string& output);
// Stored rows of part `part` where a tensor holds, head by head, `parts` runs of head_dim rows.
std::vector<uint32_t> head_interleaved_rows(int64_t heads, int64_t head_dim, int64_t part, int64_t parts);
// `key` where the config has it; else what is stored under `base`.
AttentionBias attention_bias(ConfigReader& config, std::string_view key, const std::string& base);

// Windows of families where `use_sliding_window` gives the layers from `max_window_layers` on a window (Qwen).
std::vector<int> upper_layer_windows(ConfigReader& config, int64_t layers);

MlpSpec gated_mlp(const Dense& dense, const std::string& base, bool bias = false);  // gate_proj, up_proj, down_proj
MlpSpec fused_gated_mlp(const Dense& dense, const std::string& base);               // gate_up_proj, down_proj
MlpSpec plain_mlp(const Dense& dense, const std::string& up, const std::string& down, bool bias);

// h += scale * attention(norm(h));  h += scale * mlp(norm(h))
LayerSpec pre_norm_layer(NormSpec before_attention, AttentionSpec attention, NormSpec before_mlp, MlpSpec mlp,
                         float residual_scale = 1.0f);
// The same with Llama's RMS norms below `layer`: input_layernorm and post_attention_layernorm.
LayerSpec llama_layer(const Dense& dense, const std::string& layer, AttentionSpec attention, MlpSpec mlp,
                      float residual_scale = 1.0f);
// h += norm(attention(h));  h += norm(mlp(h))
LayerSpec post_norm_layer(AttentionSpec attention, NormSpec after_attention, MlpSpec mlp, NormSpec after_mlp);
// h += norm(attention(norm(h)));  h += norm(mlp(norm(h)))
LayerSpec sandwich_layer(NormSpec before_attention, AttentionSpec attention, NormSpec after_attention,
                         NormSpec before_mlp, MlpSpec mlp, NormSpec after_mlp);

// What tells one Gemma with sandwiched layers from another.
struct SandwichDefaults {
  double attention_cap = 0;  // class defaults; 0: off
  double logit_cap = 0;
  std::function<bool(int64_t layer)> sliding;
};
// A whole spec of sandwich_layer()s with norms of offset weights: embeddings times sqrt(hidden), scores divided by the
// root of `query_pre_attn_scalar`, soft caps, some layers with the sliding window. `complete` gives the attention of
// the tensors under `base`, whose window is set, its rope and what else it has.
DecoderSpec gemma_sandwich(ConfigReader& config, const Dense& dense, const SandwichDefaults& defaults,
                           const std::function<void(AttentionSpec& attention, const std::string& base)>& complete);

// h += attention(n(h)) + mlp(m(h)); no m: the feed-forward sees n(h)
LayerSpec parallel_layer(NormSpec before_attention, std::optional<NormSpec> before_mlp, AttentionSpec attention,
                         MlpSpec mlp);

}  // namespace vedette::models
