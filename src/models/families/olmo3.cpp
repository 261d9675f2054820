// OLMo 3: OLMo 2 with three sliding layers to one full; only the full ones scale their rope.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_olmo3(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 50304, .eps = 1e-5});
  const RopeSpec full_rope = read_rope(config, {.head_dim = d.head_dim, .theta = 500000});
  const RopeSpec sliding_rope =
      read_rope(config, {.head_dim = d.head_dim, .theta = 500000, .layer_type = "sliding_attention", .scaled = false});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const std::vector<int> windows =
      config.layer_windows(d.layers, config.sliding_window(4096), [](int64_t i) { return (i + 1) % 4 != 0; });
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.q_norm = rms_norm(p + "self_attn.q_norm", d.heads * d.head_dim, d.eps);
    self.k_norm = rms_norm(p + "self_attn.k_norm", d.kv_heads * d.head_dim, d.eps);
    self.window = windows[static_cast<size_t>(i)];
    self.rope = self.window > 0 ? sliding_rope : full_rope;
    spec.layers.push_back(post_norm_layer(self, rms_norm(p + "post_attention_layernorm", d.hidden, d.eps),
                                          gated_mlp(d, p + "mlp."),
                                          rms_norm(p + "post_feedforward_layernorm", d.hidden, d.eps)));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
