// Gemma 2: norms around both halves, soft-capped scores and logits, every other layer with a sliding window.
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
  DecoderSpec spec =
      gemma_sandwich(config, d, {.attention_cap = 50, .logit_cap = 30, .sliding = [](int64_t i) { return i % 2 == 0; }},
                     [&](AttentionSpec& attention, const std::string&) { attention.rope = rope; });
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
