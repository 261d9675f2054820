// Hunyuan (dense): query and key heads are normed after the rope.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_hunyuan_v1_dense(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 290943, .eps = 1e-5});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim, .dynamic_alpha = true});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.q_norm = head_norm(p + "self_attn.query_layernorm", d);
    self.k_norm = head_norm(p + "self_attn.key_layernorm", d);
    self.norm_after_rope = true;
    self.rope = rope;
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
