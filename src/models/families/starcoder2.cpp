// StarCoder 2: LayerNorms with bias, a plain GELU feed-forward, an optional window on every layer.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_starcoder2(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 49152,
                                      .hidden = 3072,
                                      .intermediate = 12288,
                                      .layers = 30,
                                      .heads = 24,
                                      .kv_heads = 2,
                                      .context = 4096,
                                      .eps_key = "norm_epsilon",
                                      .eps = 1e-5,
                                      .activation = "gelu_pytorch_tanh"});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const bool bias = config.boolean("use_bias", true);
  const int window = static_cast<int>(config.sliding_window(0));
  DecoderSpec spec = start_spec(config, d, true);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = bias, .output = bias});
    self.rope = rope;
    self.window = window;
    spec.layers.push_back(pre_norm_layer(layer_norm(p + "input_layernorm", d.hidden, d.eps, true), self,
                                         layer_norm(p + "post_attention_layernorm", d.hidden, d.eps, true),
                                         plain_mlp(d, p + "mlp.c_fc", p + "mlp.c_proj", bias)));
  }
  spec.final_norm = layer_norm(d.prefix + "norm", d.hidden, d.eps, true);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
