// Command R: attention and feed-forward side by side behind one LayerNorm without bias, interleaved rope.
#include "models/blocks.h"

namespace vedette::models {

namespace {

// A LayerNorm of each head with weights of its own.
NormSpec per_head_norm(const std::string& base, int64_t heads, const Dense& d) {
  NormSpec norm = layer_norm(base, heads * d.head_dim, d.eps, false);
  norm.group = static_cast<int>(d.head_dim);
  return norm;
}

}  // namespace

Result<DecoderSpec> build_cohere(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 256000,
                                      .hidden = 8192,
                                      .intermediate = 22528,
                                      .layers = 40,
                                      .heads = 64,
                                      .context = 8192,
                                      .eps_key = "layer_norm_eps",
                                      .eps = 1e-5});
  const RopeSpec rope =
      read_rope(config, {.head_dim = d.head_dim, .kind = ops::RopeKind::kInterleaved, .theta = 500000});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const bool qk_norm = config.flag_or_stored("use_qk_norm", d.layer(0) + "self_attn.q_norm.weight");
  DecoderSpec spec = start_spec(config, d, true);
  spec.logit_scale = static_cast<float>(config.number("logit_scale", 0, 1e6, 0.0625));
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.rope = rope;
    if (qk_norm) {
      self.q_norm = per_head_norm(p + "self_attn.q_norm", d.heads, d);
      self.k_norm = per_head_norm(p + "self_attn.k_norm", d.kv_heads, d);
    }
    spec.layers.push_back(
        parallel_layer(layer_norm(p + "input_layernorm", d.hidden, d.eps, false), {}, self, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = layer_norm(d.prefix + "norm", d.hidden, d.eps, false);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
