// GPT-2: learned positions, Conv1D weights stored [in, out], LayerNorms with bias.
#include "models/blocks.h"
#include "models/gpt2_layout.h"

namespace vedette::models {

namespace {

// Conv1D stores [in, out]; some conversions store [out, in]. The fused weight is never square, so it tells.
bool conv1d(const ConfigReader& config, const Dense& d) {
  const weights::StoredTensor* fused = config.checkpoint().find(d.prefix + "h.0.attn.c_attn.weight");
  return fused && fused->shape.size() == 2 && fused->shape[0] == d.hidden;
}

}  // namespace

Result<DecoderSpec> build_gpt2(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_gpt2(config, "gelu_new");
  config.refuse_if_true("add_cross_attention");
  const bool scaled = config.boolean("scale_attn_weights", true);
  const bool by_layer = config.boolean("scale_attn_by_inverse_layer_idx", false);
  const bool transposed = conv1d(config, d);
  DecoderSpec spec = start_gpt2(config, d);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.prefix + "h." + std::to_string(i) + ".";
    AttentionSpec self = attention_sizes(d);
    const std::string fused = p + "attn.c_attn";
    self.q = linear_slice(fused, 3 * d.hidden, 0, d.hidden, d.hidden, true);
    self.k = linear_slice(fused, 3 * d.hidden, d.hidden, d.hidden, d.hidden, true);
    self.v = linear_slice(fused, 3 * d.hidden, 2 * d.hidden, d.hidden, d.hidden, true);
    self.o = linear(p + "attn.c_proj", d.hidden, d.hidden, true);
    if (!scaled) self.scale = 1;
    if (by_layer) self.scale /= static_cast<float>(i + 1);
    MlpSpec mlp = plain_mlp(d, p + "mlp.c_fc", p + "mlp.c_proj", true);
    for (LinearSpec* part : {&self.q, &self.k, &self.v, &self.o, &mlp.up, &mlp.down}) part->transposed = transposed;
    spec.layers.push_back(gpt2_layer(d, p, self, mlp));
  }
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
