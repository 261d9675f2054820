// Apertus: xIELU feed-forwards with learned parameters, norms on query and key heads.
#include "models/blocks.h"

namespace vedette::models {

namespace {

Json default_rope() {
  Json rope = Json::object();
  rope.set("rope_type", "llama3");
  rope.set("rope_theta", 12000000.0);
  rope.set("factor", 8.0);
  rope.set("original_max_position_embeddings", 8192);
  rope.set("low_freq_factor", 1.0);
  rope.set("high_freq_factor", 4.0);
  return rope;
}

}  // namespace

Result<DecoderSpec> build_apertus(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(
      config, {.vocab = 131072, .intermediate = 14336, .context = 65536, .eps = 1e-5, .activation = "xielu"});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim, .theta = 12000000, .defaults = default_rope()});
  const AttentionBias bias = attention_bias(config, "attention_bias", d.layer(0) + "self_attn.");
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.", bias);
    self.q_norm = head_norm(p + "self_attn.q_norm", d);
    self.k_norm = head_norm(p + "self_attn.k_norm", d);
    self.rope = rope;
    MlpSpec mlp = plain_mlp(d, p + "mlp.up_proj", p + "mlp.down_proj", false);
    if (mlp.activation == ops::Activation::kXielu) mlp.activation_tensors = p + "mlp.act_fn.";
    spec.layers.push_back(pre_norm_layer(rms_norm(p + "attention_layernorm", d.hidden, d.eps), self,
                                         rms_norm(p + "feedforward_layernorm", d.hidden, d.eps), mlp));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  spec.f16_kv_overflows = true;  // xIELU squares its input: values leave the range of float16
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
