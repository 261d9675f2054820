// EXAONE 4: norms after each half and on query and key heads; where windows are used, full layers have no rope.
#include "models/blocks.h"

namespace vedette::models {

namespace {

// `sliding_window_pattern`: every n-th layer is full, or a repeated string of L (local) and G (global).
std::vector<bool> read_pattern(ConfigReader& config, int64_t layers) {
  std::vector<bool> sliding(static_cast<size_t>(layers));
  const Json* pattern = config.find("sliding_window_pattern");
  const bool text = pattern && pattern->is_string();
  const std::string letters = text ? pattern->as_string() : std::string();
  if (text && (letters.empty() || letters.find_first_not_of("LG") != std::string::npos))
    config.refuse("sliding_window_pattern", *pattern, "a string of L and G, or a number");
  const int64_t every = text ? 1 : config.integer("sliding_window_pattern", 1, kMaxLayers, 4);
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (letters.empty())
      sliding[i] = (i + 1) % static_cast<size_t>(every) != 0;
    else
      sliding[i] = i + 1 < sliding.size() && letters[i % letters.size()] == 'L';
  }
  return sliding;
}

}  // namespace

Result<DecoderSpec> build_exaone4(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 102400, .intermediate = 16384, .kv_heads = 32, .eps = 1e-5});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const int64_t window = config.sliding_window(4096);
  const std::vector<bool> pattern = window > 0 ? read_pattern(config, d.layers) : std::vector<bool>();
  const std::vector<int> windows =
      config.layer_windows(d.layers, window, [&](int64_t i) { return window > 0 && pattern[static_cast<size_t>(i)]; });
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.");
    self.q_norm = head_norm(p + "self_attn.q_norm", d);
    self.k_norm = head_norm(p + "self_attn.k_norm", d);
    self.window = windows[static_cast<size_t>(i)];
    if (window == 0 || self.window > 0) self.rope = rope;
    spec.layers.push_back(post_norm_layer(self, rms_norm(p + "post_attention_layernorm", d.hidden, d.eps),
                                          gated_mlp(d, p + "mlp."),
                                          rms_norm(p + "post_feedforward_layernorm", d.hidden, d.eps)));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
