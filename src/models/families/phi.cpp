// Phi 1 and 2: attention and feed-forward side by side behind one LayerNorm, biases everywhere, the head's included.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_phi(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 51200,
                                      .hidden = 2048,
                                      .intermediate = 8192,
                                      .layers = 24,
                                      .eps_key = "layer_norm_eps",
                                      .eps = 1e-5,
                                      .activation = "gelu_new"});
  const RopeSpec rope =
      read_rope(config, {.head_dim = d.head_dim, .partial_key = "partial_rotary_factor", .partial = 0.5});
  const bool qk_norm = config.boolean("qk_layernorm", false);
  const auto qk_layer_norm = [&](const std::string& base) {
    NormSpec norm = layer_norm(base, d.head_dim, d.eps, true);
    norm.group = static_cast<int>(d.head_dim);
    return norm;
  };
  DecoderSpec spec = start_spec(config, d, false);
  spec.head.bias = d.head + ".bias";
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", {.qkv = true});
    self.o = linear(p + "self_attn.dense", d.hidden, d.heads * d.head_dim, true);
    self.rope = rope;
    if (qk_norm) {
      self.q_norm = qk_layer_norm(p + "self_attn.q_layernorm");
      self.k_norm = qk_layer_norm(p + "self_attn.k_layernorm");
    }
    spec.layers.push_back(parallel_layer(layer_norm(p + "input_layernorm", d.hidden, d.eps, true), {}, self,
                                         plain_mlp(d, p + "mlp.fc1", p + "mlp.fc2", true)));
  }
  spec.final_norm = layer_norm(d.prefix + "final_layernorm", d.hidden, d.eps, true);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
