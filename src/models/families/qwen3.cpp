// Qwen 3: Llama with a norm on each query and key head.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_qwen3(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d =
      read_dense(config, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .head_dim = 128, .context = 32768});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const std::vector<int> windows = upper_layer_windows(config, d.layers);
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.q_norm = head_norm(p + "self_attn.q_norm", d);
    self.k_norm = head_norm(p + "self_attn.k_norm", d);
    self.rope = rope;
    self.window = windows[static_cast<size_t>(i)];
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
