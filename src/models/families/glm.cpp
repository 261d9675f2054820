// GLM-4 (first generation): half of each head turns in interleaved pairs, fused gate and up.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_glm(const weights::Checkpoint& checkpoint) {
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
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = bias});
    self.rope = rope;
    spec.layers.push_back(llama_layer(d, p, self, fused_gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
