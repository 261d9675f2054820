// OLMo 1: LayerNorms without parameters; q, k and v may be clipped.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_olmo(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 50304});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const float clip = static_cast<float>(config.number_or_off("clip_qkv", 1e9, 0));
  NormSpec norm;
  norm.kind = ops::NormKind::kLayer;
  norm.eps = 1e-5f;  // fixed: no key sets it
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.rope = rope;
    self.clip_qkv = clip;
    spec.layers.push_back(pre_norm_layer(norm, self, norm, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = norm;
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
