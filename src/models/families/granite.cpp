// Granite 3: Llama with multipliers on embeddings, scores, residuals and logits.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_granite(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const bool mlp_bias = config.flag_or_stored("mlp_bias", d.layer(0) + "mlp.up_proj.bias");
  const float score_scale = static_cast<float>(config.number("attention_multiplier", 0, 1e6, 1));
  const float residual_scale = static_cast<float>(config.number("residual_multiplier", 0, 1e6, 1));
  DecoderSpec spec = start_spec(config, d, false);
  spec.embedding_scale = static_cast<float>(config.number("embedding_multiplier", 0, 1e6, 1));
  spec.logit_scale = static_cast<float>(1.0 / config.number("logits_scaling", 1e-6, 1e6, 1));
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.rope = rope;
    self.scale = score_scale;
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.", mlp_bias), residual_scale));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
