// Qwen 2 and 2.5: biases on q, k, v; a sliding window on the upper layers where switched on.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_qwen2(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .context = 32768});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const std::vector<int> windows = upper_layer_windows(config, d.layers);
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = true});
    self.rope = rope;
    self.window = windows[static_cast<size_t>(i)];
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
