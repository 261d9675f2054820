// Names and conversions as llama.cpp's converter writes them (gguf-py, conversion/).
#include "weights/gguf_architectures.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "weights/gguf_config.h"
#include "weights/message_text.h"

namespace vedette::weights {
namespace {

constexpr auto kTop = std::to_array<TensorName>(
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}});
constexpr auto kTopPhi = std::to_array<TensorName>(
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.final_layernorm"}, {"output", "lm_head"}});
constexpr auto kTopGpt2 = std::to_array<TensorName>({{"token_embd", "transformer.wte"},
                                                     {"position_embd", "transformer.wpe"},
                                                     {"output_norm", "transformer.ln_f"},
                                                     {"output", "lm_head"}});
constexpr auto kTopNeox = std::to_array<TensorName>(
    {{"token_embd", "gpt_neox.embed_in"}, {"output_norm", "gpt_neox.final_layer_norm"}, {"output", "embed_out"}});

#define VEDETTE_ATTENTION                                                                                           \
  {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"},                   \
      {"attn_qkv", "self_attn.qkv_proj"}, {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"}, \
      {"attn_k_norm", "self_attn.k_norm"}
#define VEDETTE_MLP {"ffn_gate", "mlp.gate_proj"}, {"ffn_up", "mlp.up_proj"}, {"ffn_down", "mlp.down_proj"}

constexpr auto kLlama = std::to_array<TensorName>(
    {{"attn_norm", "input_layernorm"}, VEDETTE_ATTENTION, {"ffn_norm", "post_attention_layernorm"}, VEDETTE_MLP});
constexpr auto kSeedOss = std::to_array<TensorName>({{"attn_norm", "input_layernorm"},
                                                     VEDETTE_ATTENTION,
                                                     {"post_attention_norm", "post_attention_layernorm"},
                                                     VEDETTE_MLP});
constexpr auto kGemma2 = std::to_array<TensorName>({{"attn_norm", "input_layernorm"},
                                                    VEDETTE_ATTENTION,
                                                    {"post_attention_norm", "post_attention_layernorm"},
                                                    {"ffn_norm", "pre_feedforward_layernorm"},
                                                    {"post_ffw_norm", "post_feedforward_layernorm"},
                                                    VEDETTE_MLP});
constexpr auto kPostNorm = std::to_array<TensorName>({VEDETTE_ATTENTION,
                                                      {"post_attention_norm", "post_attention_layernorm"},
                                                      {"post_ffw_norm", "post_feedforward_layernorm"},
                                                      VEDETTE_MLP});
constexpr auto kGatedFused = std::to_array<TensorName>({{"attn_norm", "input_layernorm"},
                                                        VEDETTE_ATTENTION,
                                                        {"ffn_norm", "post_attention_layernorm"},
                                                        {"ffn_up", "mlp.gate_up_proj"},
                                                        {"ffn_down", "mlp.down_proj"}});
constexpr auto kGlm4 = std::to_array<TensorName>({{"attn_norm", "input_layernorm"},
                                                  VEDETTE_ATTENTION,
                                                  {"post_attention_norm", "post_self_attn_layernorm"},
                                                  {"ffn_norm", "post_attention_layernorm"},
                                                  {"post_ffw_norm", "post_mlp_layernorm"},
                                                  {"ffn_up", "mlp.gate_up_proj"},
                                                  {"ffn_down", "mlp.down_proj"}});
constexpr auto kHunyuan = std::to_array<TensorName>({{"attn_q_norm", "self_attn.query_layernorm"},
                                                     {"attn_k_norm", "self_attn.key_layernorm"},
                                                     {"attn_norm", "input_layernorm"},
                                                     VEDETTE_ATTENTION,
                                                     {"ffn_norm", "post_attention_layernorm"},
                                                     VEDETTE_MLP});
constexpr auto kApertus = std::to_array<TensorName>(
    {{"attn_norm", "attention_layernorm"}, VEDETTE_ATTENTION, {"ffn_norm", "feedforward_layernorm"}, VEDETTE_MLP});
constexpr auto kPhi = std::to_array<TensorName>({{"attn_output", "self_attn.dense"},
                                                 {"attn_norm", "input_layernorm"},
                                                 VEDETTE_ATTENTION,
                                                 {"ffn_up", "mlp.fc1"},
                                                 {"ffn_down", "mlp.fc2"}});
constexpr auto kStarcoder2 = std::to_array<TensorName>({{"attn_norm", "input_layernorm"},
                                                        VEDETTE_ATTENTION,
                                                        {"ffn_norm", "post_attention_layernorm"},
                                                        {"ffn_up", "mlp.c_fc"},
                                                        {"ffn_down", "mlp.c_proj"}});
constexpr auto kGpt2 = std::to_array<TensorName>({{"attn_norm", "ln_1"},
                                                  {"attn_qkv", "attn.c_attn"},
                                                  {"attn_output", "attn.c_proj"},
                                                  {"ffn_norm", "ln_2"},
                                                  {"ffn_up", "mlp.c_fc"},
                                                  {"ffn_down", "mlp.c_proj"}});
constexpr auto kNeox = std::to_array<TensorName>({{"attn_norm", "input_layernorm"},
                                                  {"attn_qkv", "attention.query_key_value"},
                                                  {"attn_output", "attention.dense"},
                                                  {"ffn_norm", "post_attention_layernorm"},
                                                  {"ffn_up", "mlp.dense_h_to_4h"},
                                                  {"ffn_down", "mlp.dense_4h_to_h"}});
#undef VEDETTE_ATTENTION
#undef VEDETTE_MLP

void llama(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", c.has_tensor("blk.0.attn_q.bias"));
  c.set("mlp_bias", c.has_tensor("blk.0.ffn_up.bias"));
  if (const auto window = c.integer("attention.sliding_window"); window && *window > 0) {
    c.set("model_type", "mistral");
    c.set("sliding_window", *window);
  }
}

void qwen(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", c.has_tensor("blk.0.attn_q.bias"));
  c.set("use_sliding_window", false);
}

void gemma(GgufConfig& c) {
  c.set("hidden_act", "gelu_pytorch_tanh");
  c.set("hidden_activation", "gelu_pytorch_tanh");
}

// Attention scale of the 27B models: hidden / heads; of all others the head's width.
void gemma_scale(GgufConfig& c, int64_t layers_of_27b) {
  c.set("query_pre_attn_scalar", c.layers == layers_of_27b ? c.hidden / c.heads : c.head_dim);
}

void gemma2(GgufConfig& c) {
  gemma(c);
  gemma_scale(c, 46);
  c.set("attn_logit_softcapping", c.number("attn_logit_softcapping").value_or(50.0));
  c.set("final_logit_softcapping", c.number("final_logit_softcapping").value_or(30.0));
  c.layer_types(c.integer("attention.sliding_window").value_or(4096), [](int64_t i) { return i % 2 == 0; });
}

void gemma3(GgufConfig& c) {
  gemma(c);
  gemma_scale(c, 62);
  c.set_if("final_logit_softcapping", c.number("final_logit_softcapping"));
  const int64_t pattern = c.integer("attention.sliding_window_pattern").value_or(6);
  const int64_t window = c.integer("attention.sliding_window").value_or(0);
  c.set("sliding_window_pattern", pattern);
  c.set("rope_local_base_freq", c.number("rope.freq_base_swa").value_or(10000.0));
  c.layer_types(window, [&](int64_t i) { return window > 0 && pattern > 0 && (i + 1) % pattern != 0; });
}

void phi2(GgufConfig& c) {
  c.set("hidden_act", "gelu_new");
  c.set("qk_layernorm", false);
  // The converter states one key head per query head, whatever the tensors hold.
  if (const int64_t rows = c.rows("blk.0.attn_k.weight"); rows > 0) c.set("num_key_value_heads", rows / c.head_dim);
  c.partial_rotary("partial_rotary_factor");
}

void phi3(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.partial_rotary("partial_rotary_factor");
  const int64_t window = c.integer("attention.sliding_window").value_or(0);
  c.set("sliding_window", window > 0 ? Json(window) : Json());
  if (const auto original = c.integer("rope.scaling.original_context_length"))
    c.set("original_max_position_embeddings", *original);
}

void smollm3(GgufConfig& c) {
  llama(c);
  c.set("model_type", "smollm3");
  c.set("no_rope_layer_interval", int64_t{4});
  Json uses_rope = Json::array();
  for (int64_t i = 0; i < c.layers; ++i) uses_rope.push_back(int64_t{(i + 1) % 4 != 0});
  c.set("no_rope_layers", std::move(uses_rope));
  c.set("use_sliding_window", false);
}

void olmo(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", false);
  c.set("clip_qkv", c.number("attention.clamp_kqv") ? Json(*c.number("attention.clamp_kqv")) : Json());
}

// A pattern array of booleans ("slides") if the file has one, else every `period`-th layer is full.
void sliding_pattern(GgufConfig& c, int64_t window, int64_t period) {
  const auto key = std::string(*c.gguf().string("general.architecture")) + ".attention.sliding_window_pattern";
  const auto* flags = c.gguf().array<bool>(key);
  const bool stored = flags && static_cast<int64_t>(flags->size()) >= c.layers;
  c.layer_types(window, [&](int64_t i) { return stored ? (*flags)[static_cast<size_t>(i)] : (i + 1) % period != 0; });
}

void olmo2(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", false);
  if (const auto window = c.integer("attention.sliding_window"); window && *window > 0) {
    c.set("model_type", "olmo3");
    sliding_pattern(c, *window, 4);
  }
}

void granite(GgufConfig& c) {
  llama(c);
  c.set("model_type", "granite");
  c.set_if("attention_multiplier", c.number("attention.scale"));
  c.set_if("embedding_multiplier", c.number("embedding_scale"));
  c.set_if("residual_multiplier", c.number("residual_scale"));
  c.set_if("logits_scaling", c.number("logit_scale"));
}

void cohere(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", false);
  c.set("use_qk_norm", c.has_tensor("blk.0.attn_q_norm.weight"));
  c.set_if("logit_scale", c.number("logit_scale"));
}

void cohere2(GgufConfig& c) {
  cohere(c);
  c.layer_types(c.integer("attention.sliding_window").value_or(4096), [](int64_t i) { return (i + 1) % 4 != 0; });
}

void glm(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", c.has_tensor("blk.0.attn_q.bias") || c.has_tensor("blk.0.attn_qkv.bias"));
  c.partial_rotary("partial_rotary_factor");
}

void exaone4(GgufConfig& c) {
  c.set("hidden_act", "silu");
  if (const auto window = c.integer("attention.sliding_window"); window && *window > 0)
    sliding_pattern(c, *window, 4);
  else
    c.set("sliding_window", Json());
}

void seed_oss(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", c.has_tensor("blk.0.attn_q.bias"));
  c.set("attention_out_bias", c.has_tensor("blk.0.attn_output.bias"));
  c.set("mlp_bias", c.has_tensor("blk.0.ffn_up.bias"));
}

void ernie(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("use_bias", c.has_tensor("blk.0.attn_q.bias"));
}

void hunyuan(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("attention_bias", c.has_tensor("blk.0.attn_q.bias"));
  c.set("use_qk_norm", c.has_tensor("blk.0.attn_q_norm.weight"));
}

void starcoder2(GgufConfig& c) {
  c.set("hidden_act", "gelu_pytorch_tanh");
  c.set("use_bias", c.has_tensor("blk.0.attn_q.bias"));
  const auto window = c.integer("attention.sliding_window");
  c.set("sliding_window", window && *window > 0 ? Json(*window) : Json());
}

void gpt2_sizes(GgufConfig& c) {
  c.set("n_embd", c.hidden);
  c.set("n_head", c.heads);
  c.set("n_layer", c.layers);
  c.set("n_inner", c.intermediate);
  c.set("n_positions", c.integer("context_length").value_or(0));
}

void starcoder(GgufConfig& c) {
  gpt2_sizes(c);
  c.set("activation_function", "gelu_pytorch_tanh");
  c.set("multi_query", c.kv_heads == 1);
}

void gpt2(GgufConfig& c) {
  gpt2_sizes(c);
  c.set("activation_function", "gelu_new");
}

void gptneox(GgufConfig& c) {
  c.set("hidden_act", "gelu");
  const auto parallel = c.gguf().boolean("gptneox.use_parallel_residual");
  c.set("use_parallel_residual", parallel.value_or(true));
  c.partial_rotary("rotary_pct");
  c.set("rotary_emb_base", c.number("rope.freq_base").value_or(10000.0));
  c.set("attention_bias", c.has_tensor("blk.0.attn_qkv.bias"));
}

void stablelm(GgufConfig& c) {
  c.set("hidden_act", "silu");
  c.set("use_qkv_bias", c.has_tensor("blk.0.attn_q.bias"));
  c.set("qk_layernorm", c.has_tensor("blk.0.attn_q_norm.weight"));
  c.set("use_parallel_residual", !c.has_tensor("blk.0.ffn_norm.weight"));
  c.partial_rotary("partial_rotary_factor");
}

void nemotron(GgufConfig& c) {
  c.set("hidden_act", "relu2");
  c.set("attention_bias", c.has_tensor("blk.0.attn_q.bias"));
  c.set("mlp_bias", c.has_tensor("blk.0.ffn_up.bias"));
  c.partial_rotary("partial_rotary_factor");
}

void apertus(GgufConfig& c) {
  c.set("hidden_act", "xielu");
  c.set("attention_bias", c.has_tensor("blk.0.attn_q.bias"));
}

void mistral3(GgufConfig& c) {
  c.set("hidden_act", "silu");
  const auto window = c.integer("attention.sliding_window");
  c.set("sliding_window", window && *window > 0 ? Json(*window) : Json());
}

constexpr std::string_view kLayers = "model.layers.";
const auto kArchitectures = std::to_array<GgufArchitecture>({
    {.name = "llama",
     .model_type = "llama",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .permuted = true,
     .extra = llama},
    {.name = "mistral3",
     .model_type = "ministral3",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .permuted = true,
     .extra = mistral3},
    {.name = "qwen2",
     .model_type = "qwen2",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .extra = qwen},
    {.name = "qwen3",
     .model_type = "qwen3",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .extra = qwen},
    {.name = "gemma",
     .model_type = "gemma",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .norm_plus_one = true,
     .extra = gemma},
    {.name = "gemma2",
     .model_type = "gemma2",
     .layers = kLayers,
     .top = kTop,
     .layer = kGemma2,
     .eps_key = "rms_norm_eps",
     .norm_plus_one = true,
     .extra = gemma2},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .layers = kLayers,
     .top = kTop,
     .layer = kGemma2,
     .eps_key = "rms_norm_eps",
     .norm_plus_one = true,
     .extra = gemma3},
    {.name = "phi2",
     .model_type = "phi",
     .layers = kLayers,
     .top = kTopPhi,
     .layer = kPhi,
     .eps_key = "layer_norm_eps",
     .rms = false,
     .extra = phi2},
    {.name = "phi3",
     .model_type = "phi3",
     .layers = kLayers,
     .top = kTop,
     .layer = kGatedFused,
     .eps_key = "rms_norm_eps",
     .fused_qkv = FusedQkv::kKeep,
     .extra = phi3},
    {.name = "smollm3",
     .model_type = "smollm3",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .permuted = true,
     .extra = smollm3},
    {.name = "olmo",
     .model_type = "olmo",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "layer_norm_eps",
     .rms = false,
     .permuted = true,
     .extra = olmo},
    {.name = "olmo2",
     .model_type = "olmo2",
     .layers = kLayers,
     .top = kTop,
     .layer = kPostNorm,
     .eps_key = "rms_norm_eps",
     .extra = olmo2},
    {.name = "granite",
     .model_type = "granite",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .permuted = true,
     .extra = granite},
    {.name = "command-r",
     .model_type = "cohere",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "layer_norm_eps",
     .rms = false,
     .extra = cohere},
    {.name = "cohere2",
     .model_type = "cohere2",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "layer_norm_eps",
     .rms = false,
     .extra = cohere2},
    {.name = "glm4",
     .model_type = "glm4",
     .layers = kLayers,
     .top = kTop,
     .layer = kGlm4,
     .eps_key = "rms_norm_eps",
     .extra = glm},
    {.name = "chatglm",
     .model_type = "glm",
     .layers = kLayers,
     .top = kTop,
     .layer = kGatedFused,
     .eps_key = "rms_norm_eps",
     .extra = glm},
    {.name = "exaone4",
     .model_type = "exaone4",
     .layers = kLayers,
     .top = kTop,
     .layer = kPostNorm,
     .eps_key = "rms_norm_eps",
     .extra = exaone4},
    {.name = "seed_oss",
     .model_type = "seed_oss",
     .layers = kLayers,
     .top = kTop,
     .layer = kSeedOss,
     .eps_key = "rms_norm_eps",
     .extra = seed_oss},
    {.name = "ernie4_5",
     .model_type = "ernie4_5",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "rms_norm_eps",
     .extra = ernie},
    {.name = "hunyuan-dense",
     .model_type = "hunyuan_v1_dense",
     .layers = kLayers,
     .top = kTop,
     .layer = kHunyuan,
     .eps_key = "rms_norm_eps",
     .extra = hunyuan},
    {.name = "starcoder2",
     .model_type = "starcoder2",
     .layers = kLayers,
     .top = kTop,
     .layer = kStarcoder2,
     .eps_key = "norm_epsilon",
     .rms = false,
     .extra = starcoder2},
    {.name = "starcoder",
     .model_type = "gpt_bigcode",
     .layers = "transformer.h.",
     .top = kTopGpt2,
     .layer = kGpt2,
     .eps_key = "layer_norm_epsilon",
     .rms = false,
     .fused_qkv = FusedQkv::kKeep,
     .extra = starcoder},
    {.name = "gpt2",
     .model_type = "gpt2",
     .layers = "transformer.h.",
     .top = kTopGpt2,
     .layer = kGpt2,
     .eps_key = "layer_norm_epsilon",
     .rms = false,
     .fused_qkv = FusedQkv::kKeep,
     .extra = gpt2},
    {.name = "gptneox",
     .model_type = "gpt_neox",
     .layers = "gpt_neox.layers.",
     .top = kTopNeox,
     .layer = kNeox,
     .eps_key = "layer_norm_eps",
     .rms = false,
     .fused_qkv = FusedQkv::kPerHead,
     .extra = gptneox},
    {.name = "stablelm",
     .model_type = "stablelm",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "layer_norm_eps",
     .rms = false,
     .extra = stablelm},
    {.name = "nemotron",
     .model_type = "nemotron",
     .layers = kLayers,
     .top = kTop,
     .layer = kLlama,
     .eps_key = "norm_eps",
     .rms = false,
     .norm_plus_one = true,
     .extra = nemotron},
    {.name = "apertus",
     .model_type = "apertus",
     .layers = kLayers,
     .top = kTop,
     .layer = kApertus,
     .eps_key = "rms_norm_eps",
     .extra = apertus},
});

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  return kArchitectures;
}

Result<const GgufArchitecture*> find_architecture(const GgufFile& gguf, const std::string& file) {
  const std::string* name = gguf.string("general.architecture");
  if (!name)
    return corrupt_file("general.architecture", "{}: metadata 'general.architecture' is missing or no string", file);
  const auto at = std::ranges::find(kArchitectures, *name, &GgufArchitecture::name);
  if (at != kArchitectures.end()) return &*at;
  std::string known;
  for (const GgufArchitecture& architecture : kArchitectures)
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  return unsupported("general.architecture", "{}: architecture '{}' is not supported; supported are {}", file,
                     shown(*name), known);
}

}  // namespace vedette::weights
