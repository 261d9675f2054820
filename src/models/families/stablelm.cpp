// StableLM 2: LayerNorms with bias, a quarter of each head turns; optionally per-head norms and parallel halves.
#include "models/blocks.h"

namespace vedette::models {

namespace {

// Every head has a tensor of its own.
NormSpec per_head_norm(const std::string& base, int64_t heads, const Dense& d) {
  NormSpec norm = layer_norm(base, heads * d.head_dim, d.eps, false);
  norm.group = static_cast<int>(d.head_dim);
  norm.weight.clear();
  for (int64_t h = 0; h < heads; ++h) norm.weight_parts.push_back(base + ".norms." + std::to_string(h) + ".weight");
  return norm;
}

}  // namespace

Result<DecoderSpec> build_stablelm(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 50304,
                                      .hidden = 2560,
                                      .intermediate = 6912,
                                      .kv_heads = 32,
                                      .context = 4096,
                                      .eps_key = "layer_norm_eps",
                                      .eps = 1e-5});
  const RopeSpec rope =
      read_rope(config, {.head_dim = d.head_dim, .partial_key = "partial_rotary_factor", .partial = 0.25});
  const std::string first = d.layer(0);
  const bool bias = config.flag_or_stored("use_qkv_bias", first + "self_attn.q_proj.bias");
  const bool parallel = config.boolean("use_parallel_residual", false);
  const bool qk_norm = config.flag_or_stored("qk_layernorm", first + "self_attn.q_layernorm.norms.0.weight");
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = bias});
    self.rope = rope;
    if (qk_norm) {
      self.q_norm = per_head_norm(p + "self_attn.q_layernorm", d.heads, d);
      self.k_norm = per_head_norm(p + "self_attn.k_layernorm", d.kv_heads, d);
    }
    const NormSpec before = layer_norm(p + "input_layernorm", d.hidden, d.eps, true);
    const MlpSpec mlp = gated_mlp(d, p + "mlp.");
    spec.layers.push_back(
        parallel
            ? parallel_layer(before, {}, self, mlp)
            : pre_norm_layer(before, self, layer_norm(p + "post_attention_layernorm", d.hidden, d.eps, true), mlp));
  }
  spec.final_norm = layer_norm(d.prefix + "norm", d.hidden, d.eps, true);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
