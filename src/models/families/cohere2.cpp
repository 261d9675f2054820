// Command R7B and A: Command R with three sliding layers to one full; the full ones have no rope.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_cohere2(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 256000,
                                      .hidden = 8192,
                                      .intermediate = 22528,
                                      .layers = 40,
                                      .heads = 64,
                                      .context = 8192,
                                      .eps_key = "layer_norm_eps",
                                      .eps = 1e-5});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim, .kind = ops::RopeKind::kInterleaved});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const int64_t pattern = config.integer("sliding_window_pattern", 1, kMaxLayers, 4);
  const std::vector<int> windows = config.layer_windows(d.layers, config.sliding_window(4096),
                                                        [pattern](int64_t i) { return (i + 1) % pattern != 0; });
  DecoderSpec spec = start_spec(config, d, true);
  spec.logit_scale = static_cast<float>(config.number("logit_scale", 0, 1e6, 0.0625));
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.window = windows[static_cast<size_t>(i)];
    if (self.window > 0) self.rope = rope;
    spec.layers.push_back(
        parallel_layer(layer_norm(p + "input_layernorm", d.hidden, d.eps, false), {}, self, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = layer_norm(d.prefix + "norm", d.hidden, d.eps, false);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
