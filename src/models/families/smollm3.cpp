// SmolLM 3: Llama where every fourth layer has no rope.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_smollm3(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d =
      read_dense(config, {.vocab = 128256, .hidden = 2048, .layers = 36, .heads = 16, .kv_heads = 4, .context = 32768});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim, .theta = 2000000});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const bool mlp_bias = config.flag_or_stored("mlp_bias", d.layer(0) + "mlp.up_proj.bias");
  const int64_t interval = config.integer("no_rope_layer_interval", 1, int64_t{1} << 30, 4);
  // 1 where a layer has rope, despite the name.
  const std::vector<int64_t> with_rope = config.integers(
      "no_rope_layers", d.layers, 0, 1, [interval](int64_t i) { return (i + 1) % interval != 0 ? 1 : 0; });
  const bool windowed = config.boolean("use_sliding_window", false);
  const std::vector<int> windows =
      config.layer_windows(d.layers, windowed ? config.sliding_window(0) : 0,
                           [&](int64_t i) { return with_rope[static_cast<size_t>(i)] == 0; });
  DecoderSpec spec = start_spec(config, d, true);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    if (with_rope[static_cast<size_t>(i)] != 0) self.rope = rope;
    self.window = windows[static_cast<size_t>(i)];
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.", mlp_bias)));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
