// StarCoder 1, SantaCoder: GPT-2 with ordinary linears and, usually, one key and value head for all queries.
#include "models/blocks.h"
#include "models/gpt2_layout.h"

namespace vedette::models {

Result<DecoderSpec> build_gpt_bigcode(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  Dense d = read_gpt2(config, "gelu_pytorch_tanh");
  config.refuse_if_true("add_cross_attention");
  const bool multi_query = config.boolean("multi_query", true);
  const bool scaled = config.boolean("scale_attn_weights", true);
  if (multi_query) d.kv_heads = 1;
  const int64_t kv_size = d.kv_heads * d.head_dim, fused_size = d.hidden + 2 * kv_size;
  DecoderSpec spec = start_gpt2(config, d);
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.prefix + "h." + std::to_string(i) + ".";
    AttentionSpec self = attention_sizes(d);
    const std::string fused = p + "attn.c_attn";
    self.q = linear_slice(fused, fused_size, 0, d.hidden, d.hidden, true);
    self.k = linear_slice(fused, fused_size, d.hidden, kv_size, d.hidden, true);
    self.v = linear_slice(fused, fused_size, d.hidden + kv_size, kv_size, d.hidden, true);
    if (!multi_query) {  // fused head by head
      self.q.rows = head_interleaved_rows(d.heads, d.head_dim, 0, 3);
      self.k.rows = head_interleaved_rows(d.heads, d.head_dim, 1, 3);
      self.v.rows = head_interleaved_rows(d.heads, d.head_dim, 2, 3);
    }
    self.o = linear(p + "attn.c_proj", d.hidden, d.hidden, true);
    if (!scaled) self.scale = 1;
    spec.layers.push_back(gpt2_layer(d, p, self, plain_mlp(d, p + "mlp.c_fc", p + "mlp.c_proj", true)));
  }
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
