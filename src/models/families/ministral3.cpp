// Ministral 3: Mistral with YaRN and queries that grow with the logarithm of their position (as in Llama 4).
#include "models/blocks.h"

namespace vedette::models {

namespace {

Json default_rope() {
  Json rope = Json::object();
  rope.set("rope_type", "yarn");
  rope.set("rope_theta", 1000000.0);
  rope.set("factor", 16.0);
  rope.set("original_max_position_embeddings", 16384);
  rope.set("mscale", 1.0);
  rope.set("mscale_all_dim", 1.0);
  rope.set("llama_4_scaling_beta", 0.1);
  return rope;
}

}  // namespace

Result<DecoderSpec> build_ministral3(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.vocab = 131072,
                                      .intermediate = 14336,
                                      .layers = 34,
                                      .kv_heads = 8,
                                      .head_dim = 128,
                                      .context = 262144,
                                      .eps = 1e-5});
  const RopeRequest request{.head_dim = d.head_dim, .theta = 1000000, .defaults = default_rope()};
  const RopeSpec rope = read_rope(config, request);
  const double beta = rope_parameter(config, request, "llama_4_scaling_beta", 0, 100, 0);
  const double original = rope_parameter(config, request, "original_max_position_embeddings", 1, 1e9, 16384);
  const int window = static_cast<int>(config.sliding_window(0));
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.");
    self.rope = rope;
    self.window = window;
    self.query_scale_beta = static_cast<float>(beta);
    self.query_scale_context = static_cast<float>(original);
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
