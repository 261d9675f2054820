// Gemma 3 (text model): five sliding layers to one full, each kind with its own rope, norms on query and key heads.
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
  const int64_t pattern = config.integer("sliding_window_pattern", 1, kMaxLayers, 6);
  DecoderSpec spec = gemma_sandwich(config, d, {.sliding = [pattern](int64_t i) { return (i + 1) % pattern != 0; }},
                                    [&](AttentionSpec& attention, const std::string& base) {
                                      attention.rope = attention.window > 0 ? local_rope : global_rope;
                                      attention.q_norm = head_norm(base + "q_norm", d);
                                      attention.k_norm = head_norm(base + "k_norm", d);
                                      attention.q_norm->weight_offset = attention.k_norm->weight_offset = 1;
                                    });
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
