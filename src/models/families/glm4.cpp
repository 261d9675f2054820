// GLM-4-0414: GLM with norms around both halves.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_glm4(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 151552,
                                      .intermediate = 13696,
                                      .layers = 40,
                                      .kv_heads = 2,
                                      .head_dim = 128,
                                      .context = 131072,
                                      .eps = 1.5625e-7});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim,
                                           .kind = ops::RopeKind::kInterleaved,
                                           .partial_key = "partial_rotary_factor",
                                           .partial = 0.5});
  const bool bias = config.boolean("attention_bias", true);
  const auto norm = [&](const std::string& base) { return rms_norm(base, d.hidden, d.eps); };
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = bias});
    self.rope = rope;
    spec.layers.push_back(sandwich_layer(norm(p + "input_layernorm"), self, norm(p + "post_self_attn_layernorm"),
                                         norm(p + "post_attention_layernorm"), fused_gated_mlp(d, p + "mlp."),
                                         norm(p + "post_mlp_layernorm")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
