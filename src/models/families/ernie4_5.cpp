// ERNIE 4.5 (dense): Llama with interleaved rope and one switch for all biases.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_ernie4_5(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 103424,
                                      .hidden = 1024,
                                      .intermediate = 3072,
                                      .layers = 18,
                                      .heads = 16,
                                      .kv_heads = 2,
                                      .head_dim = 128,
                                      .context = 131072,
                                      .eps = 1e-5});
  const RopeSpec rope =
      read_rope(config, {.head_dim = d.head_dim, .kind = ops::RopeKind::kInterleaved, .theta = 500000});
  const bool bias = config.boolean("use_bias", false);
  DecoderSpec spec = start_spec(config, d, true);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = bias, .output = bias});
    self.rope = rope;
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.", bias)));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
