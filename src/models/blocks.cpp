#include "models/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace vedette::models {

namespace {

struct Prefix {
  std::string_view tensors;
  std::string_view head;
};

// Where the text model's tensors may live: plain checkpoints, multimodal ones of both generations, bare exports.
constexpr std::array<Prefix, 5> kPrefixes{{
    {"model.", "lm_head"},
    {"language_model.model.", "language_model.lm_head"},
    {"model.language_model.", "lm_head"},
    {"language_model.", "lm_head"},
    {"", "lm_head"},
}};

Prefix find_prefix(const ConfigReader& config) {
  for (const Prefix& prefix : kPrefixes)
    if (config.stored(std::string(prefix.tensors) + "embed_tokens.weight")) return prefix;
  return kPrefixes[0];
}

}  // namespace

int64_t read_size(ConfigReader& config, std::string_view key, int64_t max, std::optional<int64_t> fallback) {
  return config.integer(key, 1, max, fallback);
}

Dense read_dense(ConfigReader& config, const DenseDefaults& defaults) {
  Dense dense;
  dense.vocab = read_size(config, "vocab_size", kMaxVocab, defaults.vocab);
  dense.hidden = read_size(config, "hidden_size", kMaxHidden, defaults.hidden);
  dense.intermediate = read_size(config, "intermediate_size", kMaxIntermediate, defaults.intermediate);
  dense.layers = read_size(config, "num_hidden_layers", kMaxLayers, defaults.layers);
  dense.heads = read_size(config, "num_attention_heads", kMaxHeads, defaults.heads);
  const int64_t kv_heads = defaults.kv_heads ? defaults.kv_heads : dense.heads;
  // A null means "as many as heads" and "hidden / heads", whatever the class default.
  dense.kv_heads = read_size(config, "num_key_value_heads", kMaxHeads,
                             config.is_null("num_key_value_heads") ? dense.heads : kv_heads);
  dense.head_dim = config.is_null("head_dim") ? 0 : defaults.head_dim;
  if (config.has("head_dim")) dense.head_dim = read_size(config, "head_dim", kMaxHeadDim, {});
  dense.context = read_size(config, "max_position_embeddings", kMaxContext, defaults.context);
  dense.eps = static_cast<float>(config.number(defaults.eps_key, 0, 1, defaults.eps));
  dense.activation = config.activation(defaults.activation_key, defaults.activation);
  check_heads(config, dense);
  const Prefix prefix = find_prefix(config);
  dense.prefix = prefix.tensors;
  dense.head = prefix.head;
  return dense;
}

void check_heads(ConfigReader& config, Dense& dense) {
  if (dense.heads % dense.kv_heads != 0) {
    config.fail(corrupt_file("num_key_value_heads",
                             "{}: num_attention_heads {} must be a multiple of num_key_value_heads {}", config.where(),
                             dense.heads, dense.kv_heads));
    dense.kv_heads = dense.heads;
  }
  if (dense.head_dim != 0) return;
  if (dense.hidden % dense.heads != 0 || dense.hidden / dense.heads > kMaxHeadDim)
    config.fail(corrupt_file("num_attention_heads",
                             "{}: hidden_size {} must split into num_attention_heads {} heads of at most {} elements",
                             config.where(), dense.hidden, dense.heads, kMaxHeadDim));
  dense.head_dim = std::max<int64_t>(dense.hidden / dense.heads, 1);
}

DecoderSpec start_spec(ConfigReader& config, const Dense& dense, bool tied_by_default) {
  DecoderSpec spec;
  spec.vocab_size = dense.vocab;
  spec.hidden_size = dense.hidden;
  spec.context_length = dense.context;
  spec.embedding = dense.prefix + "embed_tokens.weight";
  // Outside `text_config` the key speaks for the whole model too.
  const Json* outer = config.checkpoint().config.find("tie_word_embeddings");
  const bool said = config.has("tie_word_embeddings") || (outer && outer->is_bool());
  const bool fallback = outer && outer->is_bool() ? outer->as_bool() : tied_by_default;
  const bool tied = config.boolean("tie_word_embeddings", fallback);
  spec.head = linear(dense.head, dense.vocab, dense.hidden);
  if (!config.stored(spec.head.weight) && (tied || !said)) spec.head.weight = spec.embedding;
  spec.ignored_tensors = {"rotary_emb.inv_freq"};
  if (config.nested())
    spec.ignored_prefixes = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                             "model.multi_modal_projector."};
  spec.layers.reserve(static_cast<size_t>(dense.layers));
  return spec;
}

LinearSpec linear(const std::string& base, int64_t out, int64_t in, bool bias) {
  LinearSpec spec;
  spec.weight = base + ".weight";
  if (bias) spec.bias = base + ".bias";
  spec.out_features = out;
  spec.in_features = in;
  return spec;
}

LinearSpec linear_slice(const std::string& base, int64_t stored, int64_t first, int64_t count, int64_t in, bool bias) {
  LinearSpec spec = linear(base, count, in, bias);
  spec.stored_features = stored;
  spec.first_row = first;
  return spec;
}

NormSpec rms_norm(const std::string& base, int64_t size, float eps) {
  NormSpec norm;
  norm.kind = ops::NormKind::kRms;
  norm.weight = base + ".weight";
  norm.eps = eps;
  norm.size = size;
  return norm;
}

NormSpec layer_norm(const std::string& base, int64_t size, float eps, bool bias) {
  NormSpec norm = rms_norm(base, size, eps);
  norm.kind = ops::NormKind::kLayer;
  if (bias) norm.bias = base + ".bias";
  return norm;
}

NormSpec head_norm(const std::string& base, const Dense& dense) {
  NormSpec norm = rms_norm(base, dense.head_dim, dense.eps);
  norm.group = static_cast<int>(dense.head_dim);
  return norm;
}

NormSpec offset_rms_norm(const std::string& base, int64_t size, float eps) {
  NormSpec norm = rms_norm(base, size, eps);
  norm.weight_offset = 1;
  return norm;
}

AttentionSpec attention_sizes(const Dense& dense) {
  AttentionSpec spec;
  spec.n_heads = static_cast<int>(dense.heads);
  spec.n_kv_heads = static_cast<int>(dense.kv_heads);
  spec.head_dim = static_cast<int>(dense.head_dim);
  spec.value_dim = static_cast<int>(dense.head_dim);
  spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dense.head_dim)));
  return spec;
}

AttentionSpec attention(const Dense& dense, const std::string& base, AttentionBias bias) {
  AttentionSpec spec = attention_sizes(dense);
  const int64_t q_size = dense.heads * dense.head_dim, kv_size = dense.kv_heads * dense.head_dim;
  spec.q = linear(base + "q_proj", q_size, dense.hidden, bias.qkv);
  spec.k = linear(base + "k_proj", kv_size, dense.hidden, bias.qkv);
  spec.v = linear(base + "v_proj", kv_size, dense.hidden, bias.qkv);
  spec.o = linear(base + "o_proj", dense.hidden, q_size, bias.output);
  return spec;
}

AttentionSpec fused_attention(const Dense& dense, const std::string& fused, const std::string& output) {
  AttentionSpec spec = attention_sizes(dense);
  const int64_t q_size = dense.heads * dense.head_dim, kv_size = dense.kv_heads * dense.head_dim;
  const int64_t stored = q_size + 2 * kv_size;
  spec.q = linear_slice(fused, stored, 0, q_size, dense.hidden);
  spec.k = linear_slice(fused, stored, q_size, kv_size, dense.hidden);
  spec.v = linear_slice(fused, stored, q_size + kv_size, kv_size, dense.hidden);
  spec.o = linear(output, dense.hidden, q_size);
  return spec;
}

std::vector<uint32_t> head_interleaved_rows(int64_t heads, int64_t head_dim, int64_t part, int64_t parts) {
  std::vector<uint32_t> rows;
  rows.reserve(static_cast<size_t>(heads * head_dim));
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < head_dim; ++i) rows.push_back(static_cast<uint32_t>((h * parts + part) * head_dim + i));
  return rows;
}

AttentionBias attention_bias(ConfigReader& config, std::string_view key, const std::string& base) {
  return {config.flag_or_stored(key, base + "q_proj.bias"), config.flag_or_stored(key, base + "o_proj.bias")};
}

std::vector<int> upper_layer_windows(ConfigReader& config, int64_t layers) {
  const bool used = config.boolean("use_sliding_window", false);
  const int64_t window = used ? config.sliding_window(4096) : 0;
  const int64_t first = config.integer("max_window_layers", 0, int64_t{1} << 30, 28);
  return config.layer_windows(layers, window, [first](int64_t i) { return i >= first; });
}

MlpSpec gated_mlp(const Dense& dense, const std::string& base, bool bias) {
  MlpSpec mlp = plain_mlp(dense, base + "up_proj", base + "down_proj", bias);
  mlp.gate = linear(base + "gate_proj", dense.intermediate, dense.hidden, bias);
  return mlp;
}

MlpSpec fused_gated_mlp(const Dense& dense, const std::string& base) {
  const std::string fused = base + "gate_up_proj";
  MlpSpec mlp = plain_mlp(dense, fused, base + "down_proj", false);
  mlp.gate = linear_slice(fused, 2 * dense.intermediate, 0, dense.intermediate, dense.hidden);
  mlp.up = linear_slice(fused, 2 * dense.intermediate, dense.intermediate, dense.intermediate, dense.hidden);
  return mlp;
}

MlpSpec plain_mlp(const Dense& dense, const std::string& up, const std::string& down, bool bias) {
  MlpSpec mlp;
  mlp.up = linear(up, dense.intermediate, dense.hidden, bias);
  mlp.down = linear(down, dense.hidden, dense.intermediate, bias);
  mlp.activation = dense.activation;
  return mlp;
}

LayerSpec pre_norm_layer(NormSpec before_attention, AttentionSpec attention, NormSpec before_mlp, MlpSpec mlp,
                         float residual_scale) {
  LayerSpec layer;
  layer.parts = {std::move(before_attention), std::move(attention), ResidualSpec{residual_scale},
                 std::move(before_mlp),       std::move(mlp),       ResidualSpec{residual_scale}};
  return layer;
}

LayerSpec llama_layer(const Dense& dense, const std::string& layer, AttentionSpec attention, MlpSpec mlp,
                      float residual_scale) {
  return pre_norm_layer(rms_norm(layer + "input_layernorm", dense.hidden, dense.eps), std::move(attention),
                        rms_norm(layer + "post_attention_layernorm", dense.hidden, dense.eps), std::move(mlp),
                        residual_scale);
}

LayerSpec post_norm_layer(AttentionSpec attention, NormSpec after_attention, MlpSpec mlp, NormSpec after_mlp) {
  LayerSpec layer;
  layer.parts = {std::move(attention), std::move(after_attention), ResidualSpec{},
                 std::move(mlp),       std::move(after_mlp),       ResidualSpec{}};
  return layer;
}

LayerSpec sandwich_layer(NormSpec before_attention, AttentionSpec attention, NormSpec after_attention,
                         NormSpec before_mlp, MlpSpec mlp, NormSpec after_mlp) {
  LayerSpec layer;
  layer.parts = {std::move(before_attention), std::move(attention), std::move(after_attention), ResidualSpec{},
                 std::move(before_mlp),       std::move(mlp),       std::move(after_mlp),       ResidualSpec{}};
  return layer;
}

DecoderSpec gemma_sandwich(ConfigReader& config, const Dense& dense, const SandwichDefaults& defaults,
                           const std::function<void(AttentionSpec& attention, const std::string& base)>& complete) {
  const AttentionBias bias = attention_bias(config, "attention_bias", dense.layer(0) + "self_attn.");
  const double query_scalar = config.number("query_pre_attn_scalar", 1e-3, 1e6, 256);
  const double attention_cap = config.number_or_off("attn_logit_softcapping", 1e6, defaults.attention_cap);
  const std::vector<int> windows = config.layer_windows(dense.layers, config.sliding_window(4096), defaults.sliding);
  const auto norm = [&](const std::string& base) { return offset_rms_norm(base, dense.hidden, dense.eps); };
  DecoderSpec spec = start_spec(config, dense, true);
  spec.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(dense.hidden)));
  spec.logit_softcap = static_cast<float>(config.number_or_off("final_logit_softcapping", 1e6, defaults.logit_cap));
  for (int64_t i = 0; i < dense.layers; ++i) {
    const std::string p = dense.layer(i);
    AttentionSpec self = attention(dense, p + "self_attn.", bias);
    self.scale = static_cast<float>(1.0 / std::sqrt(query_scalar));
    self.softcap = static_cast<float>(attention_cap);
    self.window = windows[static_cast<size_t>(i)];
    complete(self, p + "self_attn.");
    spec.layers.push_back(sandwich_layer(norm(p + "input_layernorm"), self, norm(p + "post_attention_layernorm"),
                                         norm(p + "pre_feedforward_layernorm"), gated_mlp(dense, p + "mlp."),
                                         norm(p + "post_feedforward_layernorm")));
  }
  spec.final_norm = norm(dense.prefix + "norm");
  return spec;
}

LayerSpec parallel_layer(NormSpec before_attention, std::optional<NormSpec> before_mlp, AttentionSpec attention,
                         MlpSpec mlp) {
  ParallelBlockSpec block;
  block.attention_norm = std::move(before_attention);
  block.mlp_norm = std::move(before_mlp);
  block.attention = std::move(attention);
  block.mlp = std::move(mlp);
  LayerSpec layer;
  layer.parts.push_back(std::move(block));
  return layer;
}

}  // namespace vedette::models
