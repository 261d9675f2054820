// GPT-NeoX, Pythia: q, k and v fused head by head, parallel halves with a LayerNorm each, a quarter of each head turns.
#include "models/blocks.h"

namespace vedette::models {

namespace {

// Head h of q, k or v (part 0, 1, 2) starts at stored row (3 h + part) * head_dim.
LinearSpec fused_part(const Dense& d, const std::string& base, int64_t part, bool bias) {
  LinearSpec spec = linear_slice(base, 3 * d.hidden, 0, d.hidden, d.hidden, bias);
  spec.rows = head_interleaved_rows(d.heads, d.head_dim, part, 3);
  return spec;
}

}  // namespace

Result<DecoderSpec> build_gpt_neox(const weights::Checkpoint& checkpoint) {
  ConfigReader config(checkpoint);
  Dense d = read_dense(config, {.vocab = 50432,
                                .hidden = 6144,
                                .intermediate = 24576,
                                .layers = 44,
                                .heads = 64,
                                .eps_key = "layer_norm_eps",
                                .eps = 1e-5,
                                .activation = "gelu"});
  d.kv_heads = d.heads;
  d.head_dim = 0;  // always hidden / heads here
  check_heads(config, d);
  d.prefix = "gpt_neox.";
  d.head = config.stored("lm_head.weight") ? "lm_head" : "embed_out";
  const RopeSpec rope = read_rope(
      config, {.head_dim = d.head_dim, .theta_key = "rotary_emb_base", .partial_key = "rotary_pct", .partial = 0.25});
  const bool bias = config.boolean("attention_bias", true);
  const bool parallel = config.boolean("use_parallel_residual", true);
  DecoderSpec spec = start_spec(config, d, false);
  const bool tied = spec.head.weight == spec.embedding;
  spec.embedding = d.prefix + "embed_in.weight";
  if (tied) spec.head.weight = spec.embedding;
  spec.ignored_tensors = {"rotary_emb.inv_freq", "attention.bias", "attention.masked_bias"};
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string p = d.layer(i);
    AttentionSpec self = attention_sizes(d);
    self.q = fused_part(d, p + "attention.query_key_value", 0, bias);
    self.k = fused_part(d, p + "attention.query_key_value", 1, bias);
    self.v = fused_part(d, p + "attention.query_key_value", 2, bias);
    self.o = linear(p + "attention.dense", d.hidden, d.hidden, bias);
    self.rope = rope;
    const NormSpec before = layer_norm(p + "input_layernorm", d.hidden, d.eps, true);
    const NormSpec before_mlp = layer_norm(p + "post_attention_layernorm", d.hidden, d.eps, true);
    const MlpSpec mlp = plain_mlp(d, p + "mlp.dense_h_to_4h", p + "mlp.dense_4h_to_h", true);
    spec.layers.push_back(parallel ? parallel_layer(before, before_mlp, self, mlp)
                                   : pre_norm_layer(before, self, before_mlp, mlp));
  }
  spec.final_norm = layer_norm(d.prefix + "final_layer_norm", d.hidden, d.eps, true);
  return config.finish(std::move(spec));
}

}  // namespace vedette::models
