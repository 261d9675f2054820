// Nemotron 3 and 4, Minitron: LayerNorms of 1 + weight, squared ReLU, half of each head turns.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_nemotron(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 256000,
                                      .hidden = 6144,
                                      .intermediate = 24576,
                                      .heads = 48,
                                      .context = 4096,
                                      .eps_key = "norm_eps",
                                      .eps = 1e-5,
                                      .activation = "relu2"});
  const RopeSpec rope =
      read_rope(config, {.head_dim = d.head_dim, .partial_key = "partial_rotary_factor", .partial = 0.5});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  const bool mlp_bias = config.flag_or_stored("mlp_bias", d.layer(0) + "mlp.up_proj.bias");
  const auto norm = [&](const std::string& base) {
    NormSpec spec = layer_norm(base, d.hidden, d.eps, true);
    spec.weight_offset = 1;
    return spec;
  };
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.rope = rope;
    spec.layers.push_back(pre_norm_layer(norm(p + "input_layernorm"), self, norm(p + "post_attention_layernorm"),
                                         plain_mlp(d, p + "mlp.up_proj", p + "mlp.down_proj", mlp_bias)));
  }
  spec.final_norm = norm(d.prefix + "norm");
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
