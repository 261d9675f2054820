// Helium: Llama with interleaved rope.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_helium(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 48000,
                                      .hidden = 2560,
                                      .intermediate = 7040,
                                      .layers = 24,
                                      .heads = 20,
                                      .kv_heads = 20,
                                      .head_dim = 128,
                                      .context = 4096,
                                      .eps = 1e-8});
  const RopeSpec rope =
      read_rope(config, {.head_dim = d.head_dim, .kind = ops::RopeKind::kInterleaved, .theta = 100000});
  const bool bias = config.boolean("attention_bias", false);
  const bool mlp_bias = config.boolean("mlp_bias", false);
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = bias});
    self.rope = rope;
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.", mlp_bias)));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
