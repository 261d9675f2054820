#include "models/gpt2_layout.h"

namespace vedette::models {

Dense read_gpt2(ConfigReader& config, std::string_view activation) {
  Dense dense;
  dense.vocab = read_size(config, "vocab_size", kMaxVocab, 50257);
  dense.hidden = read_size(config, config.spelled({"n_embd", "hidden_size"}), kMaxHidden, 768);
  const std::string_view inner = config.spelled({"n_inner", "intermediate_size"});
  dense.intermediate = read_size(config, inner, kMaxIntermediate, 4 * dense.hidden);
  dense.layers = read_size(config, config.spelled({"n_layer", "num_hidden_layers"}), kMaxLayers, 12);
  dense.heads = read_size(config, config.spelled({"n_head", "num_attention_heads"}), kMaxHeads, 12);
  dense.kv_heads = dense.heads;
  check_heads(config, dense);
  dense.context = read_size(config, config.spelled({"n_positions", "max_position_embeddings"}), kMaxContext, 1024);
  const std::string_view eps = config.spelled({"layer_norm_epsilon", "layer_norm_eps"});
  dense.eps = static_cast<float>(config.number(eps, 0, 1, 1e-5));
  dense.activation = config.activation(config.spelled({"activation_function", "hidden_act"}), activation);
  dense.prefix = "transformer.";
  for (const char* prefix : {"transformer.", "", "model."})
    if (config.stored(std::string(prefix) + "wte.weight")) {
      dense.prefix = prefix;
      break;
    }
  dense.head = "lm_head";
  return dense;
}

DecoderSpec start_gpt2(ConfigReader& config, const Dense& dense) {
  DecoderSpec spec = start_spec(config, dense, true);
  const bool tied = spec.head.weight == spec.embedding;
  spec.embedding = dense.prefix + "wte.weight";
  if (tied) spec.head.weight = spec.embedding;
  spec.position_embedding = dense.prefix + "wpe.weight";
  // Causal masks saved as buffers.
  spec.ignored_tensors = {".attn.bias", ".attn.masked_bias"};
  spec.final_norm = layer_norm(dense.prefix + "ln_f", dense.hidden, dense.eps, true);
  return spec;
}

LayerSpec gpt2_layer(const Dense& dense, const std::string& prefix, const AttentionSpec& attention,
                     const MlpSpec& mlp) {
  return pre_norm_layer(layer_norm(prefix + "ln_1", dense.hidden, dense.eps, true), attention,
                        layer_norm(prefix + "ln_2", dense.hidden, dense.eps, true), mlp);
}

}  // namespace vedette::models
