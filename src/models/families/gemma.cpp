// Gemma 1: norms multiply by 1 + weight, embeddings by sqrt(hidden), GELU gates.
#include <cmath>

#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_gemma(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 256000,
                                      .hidden = 3072,
                                      .intermediate = 24576,
                                      .layers = 28,
                                      .heads = 16,
                                      .kv_heads = 16,
                                      .head_dim = 256,
                                      .context = 8192,
                                      .activation_key = config.spelled({"hidden_activation", "hidden_act"}),
                                      .activation = "gelu_pytorch_tanh"});
  config.refuse_if_true("use_bidirectional_attention");
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const auto norm = [&](const std::string& base) { return offset_rms_norm(base, d.hidden, d.eps); };
  DecoderSpec spec = start_spec(config, d, true);
  spec.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(d.hidden)));
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.rope = rope;
    spec.layers.push_back(pre_norm_layer(norm(p + "input_layernorm"), self, norm(p + "post_attention_layernorm"),
                                         gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = norm(d.prefix + "norm");
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
