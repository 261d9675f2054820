// Llama 1-3, SmolLM, and the many models that share their layout.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_llama(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const bool mlp_bias = config.flag_or_stored("mlp_bias", d.layer(0) + "mlp.up_proj.bias");
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.rope = rope;
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.", mlp_bias)));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
