// Mistral: Llama with a sliding window on every layer. Also the text model of mistral3 checkpoints.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_mistral(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  const Dense d = read_dense(config, {.intermediate = 14336, .kv_heads = 8, .context = 131072});
  const RopeSpec rope = read_rope(config, {.head_dim = d.head_dim});
  const int window = static_cast<int>(config.sliding_window(4096));
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention(d, p + "self_attn.");
    self.rope = rope;
    self.window = window;
    spec.layers.push_back(llama_layer(d, p, self, gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
