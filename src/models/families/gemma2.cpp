// Gemma 2: norms around both halves, soft-capped scores and logits, every other layer with a sliding window.
#include <cmath>

#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_gemma2(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 256000,
                                      .hidden = 2304,
                                      .intermediate = 9216,
                                      .layers = 26,
                                      .heads = 8,
                                      .kv_heads = 4,
                                      .head_dim = 256,
                                      .context = 8192,
                                      .activation_key = config.spelled({"hidden_activation", "hidden_act"}),
                                      .activation = "gelu_pytorch_tanh"});
  config.refuse_if_true("use_bidirectional_attention");
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const double query_scalar = config.number("query_pre_attn_scalar", 1e-3, 1e6, 256);
  const double attention_cap = config.number_or_off("attn_logit_softcapping", 1e6, 50);
  const std::vector<int> windows =
      config.layer_windows(d.layers, config.sliding_window(4096), [](int64_t i) { return i % 2 == 0; });
  const auto norm = [&](const std::string& base) { return offset_rms_norm(base, d.hidden, d.eps); };
  DecoderSpec spec = start_spec(config, d, true);
  spec.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(d.hidden)));
  spec.logit_softcap = static_cast<float>(config.number_or_off("final_logit_softcapping", 1e6, 30));
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.rope = rope;
    self.scale = static_cast<float>(1.0 / std::sqrt(query_scalar));
    self.softcap = static_cast<float>(attention_cap);
    self.window = windows[static_cast<size_t>(i)];
    spec.layers.push_back(sandwich_layer(norm(p + "input_layernorm"), self, norm(p + "post_attention_layernorm"),
                                         norm(p + "pre_feedforward_layernorm"), gated_mlp(d, p + "mlp."),
                                         norm(p + "post_feedforward_layernorm")));
  }
  spec.final_norm = norm(d.prefix + "norm");
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
