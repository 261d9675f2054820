// Gemma 3 (text model): five sliding layers to one full, each kind with its own rope, norms on query and key heads.
#include <cmath>

#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_gemma3(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 262208,
                                      .hidden = 2304,
                                      .intermediate = 9216,
                                      .layers = 26,
                                      .heads = 8,
                                      .kv_heads = 4,
                                      .head_dim = 256,
                                      .context = 131072,
                                      .activation_key = config.spelled({"hidden_activation", "hidden_act"}),
                                      .activation = "gelu_pytorch_tanh"});
  config.refuse_if_true("use_bidirectional_attention");
  const RopeSpec global_rope = read_rope(config, {.head_dim = d.head_dim, .theta = 1000000});
  const RopeSpec local_rope = read_rope(config, {.head_dim = d.head_dim,
                                                 .theta = 10000,
                                                 .theta_key = "rope_local_base_freq",
                                                 .theta_key_only = true,
                                                 .layer_type = "sliding_attention",
                                                 .scaled = false});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const double query_scalar = config.number("query_pre_attn_scalar", 1e-3, 1e6, 256);
  const double attention_cap = config.number_or_off("attn_logit_softcapping", 1e6, 0);
  const int64_t pattern = config.integer("sliding_window_pattern", 1, kMaxLayers, 6);
  const std::vector<int> windows = config.layer_windows(d.layers, config.sliding_window(4096),
                                                        [pattern](int64_t i) { return (i + 1) % pattern != 0; });
  const auto norm = [&](const std::string& base) { return offset_rms_norm(base, d.hidden, d.eps); };
  DecoderSpec spec = start_spec(config, d, true);
  spec.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(d.hidden)));
  spec.logit_softcap = static_cast<float>(config.number_or_off("final_logit_softcapping", 1e6, 0));
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.q_norm = head_norm(p + "self_attn.q_norm", d);
    self.k_norm = head_norm(p + "self_attn.k_norm", d);
    self.q_norm->weight_offset = self.k_norm->weight_offset = 1;
    self.scale = static_cast<float>(1.0 / std::sqrt(query_scalar));
    self.softcap = static_cast<float>(attention_cap);
    self.window = windows[static_cast<size_t>(i)];
    self.rope = self.window > 0 ? local_rope : global_rope;
    spec.layers.push_back(sandwich_layer(norm(p + "input_layernorm"), self, norm(p + "post_attention_layernorm"),
                                         norm(p + "pre_feedforward_layernorm"), gated_mlp(d, p + "mlp."),
                                         norm(p + "post_feedforward_layernorm")));
  }
  spec.final_norm = norm(d.prefix + "norm");
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
