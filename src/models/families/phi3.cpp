// Phi 3 and 4: Llama with fused q/k/v and gate/up, LongRoPE for long texts.
#include "models/blocks.h"

namespace vedette::models {

Result<DecoderSpec> build_phi3(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  Dense d = read_dense(config, {.vocab = 32064, .hidden = 3072, .intermediate = 8192, .context = 4096, .eps = 1e-5});
  d.context = rope_context_limit(config, d.context);
  const RopeSpec rope =
      read_rope(config, {.head_dim = d.head_dim, .partial_key = "partial_rotary_factor", .longrope_aliases = true});
  const int window = static_cast<int>(config.sliding_window(0));
  DecoderSpec spec = start_spec(config, d, false);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = fused_attention(d, p + "self_attn.qkv_proj", p + "self_attn.o_proj");
    self.rope = rope;
    self.window = window;
    spec.layers.push_back(llama_layer(d, p, self, fused_gated_mlp(d, p + "mlp.")));
  }
  spec.final_norm = rms_norm(d.prefix + "norm", d.hidden, d.eps);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
