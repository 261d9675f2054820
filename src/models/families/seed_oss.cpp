// Seed-OSS: Llama with biases on q, k, v and, by a key of its own, on the output.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_seed_oss(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 155136,
                                      .intermediate = 27648,
                                      .layers = 64,
                                      .heads = 80,
                                      .kv_heads = 8,
                                      .head_dim = 128,
                                      .context = 524288});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const AttentionBias bias{config.boolean("attention_bias", true), config.boolean("attention_out_bias", false)};
  const bool mlp_bias = config.boolean("mlp_bias", false);
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
