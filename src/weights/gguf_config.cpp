#include "weights/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"
#include "weights/message_text.h"

namespace vedette::weights {
namespace {

constexpr int64_t kMaxCount = 1 << 24;
constexpr int64_t kMaxOriginal = 1 << 20;  // positions a rope table was trained for

const GgufTensor* find_tensor(const GgufFile& gguf, std::string_view name) {
  const auto at = std::ranges::find(gguf.tensors, name, &GgufTensor::name);
  return at == gguf.tensors.end() ? nullptr : &*at;
}

// Values of a small float32 vector; empty if it is not there or of another kind.
std::vector<float> float_vector(const GgufFile& gguf, std::string_view name) {
  const GgufTensor* tensor = find_tensor(gguf, name);
  if (!tensor || tensor->scheme != ops::Scheme::kF32 || tensor->shape.size() != 1) return {};
  std::vector<float> values(static_cast<size_t>(tensor->shape[0]));
  std::memcpy(values.data(), tensor->data.data(), values.size() * sizeof(float));
  return values;
}

Json float_list(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(static_cast<double>(value));
  return list;
}

// The factors that Llama 3's rule gives (low 1, high 4), as the converter computes them.
std::vector<float> llama3_factors(double theta, int64_t rotary_dim, double factor, double original) {
  constexpr double kLow = 1, kHigh = 4;
  std::vector<float> out;
  for (int64_t i = 0; i < rotary_dim; i += 2) {
    const double frequency = 1.0 / std::pow(theta, static_cast<double>(i) / static_cast<double>(rotary_dim));
    const double wavelength = 2 * std::numbers::pi / frequency;
    double value = factor;
    if (wavelength < original / kHigh) {
      value = 1;
    } else if (wavelength <= original / kLow) {
      const double smooth = (original / wavelength - kLow) / (kHigh - kLow);
      value = 1 / ((1 - smooth) / factor + smooth);
    }
    out.push_back(static_cast<float>(value));
  }
  return out;
}

bool close(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) <= 1e-4f * std::abs(y); });
}

}  // namespace

GgufConfig::GgufConfig(const GgufFile& gguf, const GgufArchitecture& architecture, const std::string& file)
    : gguf_(gguf), architecture_(architecture), file_(file) {
  for (const GgufTensor& tensor : gguf.tensors) names_.insert(tensor.name);
}

std::string GgufConfig::key_of(std::string_view key) const {
  return std::string(architecture_.name) + "." + std::string(key);
}

std::optional<int64_t> GgufConfig::integer(std::string_view key) const {
  const std::string name = key_of(key);
  if (const auto value = gguf_.integer(name)) return value;
  // Per-layer values that are all the same are one value.
  const auto* list = gguf_.array<int64_t>(name);
  if (list && !list->empty() && std::ranges::all_of(*list, [&](int64_t v) { return v == list->front(); }))
    return list->front();
  return std::nullopt;
}

std::optional<double> GgufConfig::number(std::string_view key) const {
  return gguf_.number(key_of(key));
}

int64_t GgufConfig::required(std::string_view key, int64_t min, int64_t max) {
  const std::string name = key_of(key);
  const auto value = integer(key);
  if (!value) {
    const auto* list = gguf_.array<int64_t>(name);
    if (list)
      fail(unsupported(name, "{}: metadata '{}' differs between layers, which this architecture does not support",
                       file_, name));
    else
      fail(corrupt_file(name, "{}: metadata '{}' is {}, expected an integer", file_, name,
                        gguf_.find(name) ? "no integer" : "missing"));
    return 0;
  }
  if (*value < min || *value > max) {
    fail(corrupt_file(name, "{}: metadata '{}' is {}, expected {} to {}", file_, name, *value, min, max));
    return 0;
  }
  return *value;
}

int64_t GgufConfig::rows(std::string_view name) const {
  const GgufTensor* tensor = find_tensor(gguf_, name);
  return tensor && tensor->shape.size() == 2 ? tensor->shape[0] : 0;
}

void GgufConfig::read_sizes() {
  layers = required("block_count", 1, 4096);
  hidden = required("embedding_length", 1, kMaxCount);
  heads = required("attention.head_count", 1, 65536);
  kv_heads = integer("attention.head_count_kv") ? required("attention.head_count_kv", 1, 65536) : heads;
  if (gguf_.array<int64_t>(key_of("attention.head_count_kv")) && !integer("attention.head_count_kv"))
    required("attention.head_count_kv", 1, 65536);
  if (error_) return;
  if (integer("expert_count").value_or(0) > 0)
    fail(unsupported(key_of("expert_count"),
                     "{}: '{}' is {}; mixtures of experts are not supported for this architecture", file_,
                     key_of("expert_count"), *integer("expert_count")));
  const int64_t q_rows = rows("blk.0.attn_q.weight");
  head_dim = q_rows > 0 && q_rows % heads == 0 ? q_rows / heads : hidden / heads;
  if (integer("attention.key_length")) head_dim = required("attention.key_length", 1, 65536);
  if (head_dim < 1) fail(corrupt_file("", "{}: {} hidden columns for {} heads leave no head", file_, hidden, heads));
  rotary_dim = integer("rope.dimension_count") ? required("rope.dimension_count", 0, 65536) : head_dim;
  intermediate = integer("feed_forward_length") ? required("feed_forward_length", 1, kMaxCount) : 4 * hidden;
  if (const GgufTensor* down = find_tensor(gguf_, "blk.0.ffn_down.weight"); down && down->shape.size() == 2)
    intermediate = down->shape[1];
  set("hidden_size", hidden);
  set("num_hidden_layers", layers);
  set("num_attention_heads", heads);
  set("num_key_value_heads", kv_heads);
  set("head_dim", head_dim);
  set("intermediate_size", intermediate);
  set("max_position_embeddings", required("context_length", 1, int64_t{1} << 40));
  if (const GgufTensor* embedding = find_tensor(gguf_, "token_embd.weight"); embedding && embedding->shape.size() == 2)
    set("vocab_size", embedding->shape[0]);
  else if (integer("vocab_size"))
    set("vocab_size", required("vocab_size", 1, kMaxCount));
  set("tie_word_embeddings", !has_tensor("output.weight"));
}

Json GgufConfig::rope_scaling() {
  const std::string* type = gguf_.string(key_of("rope.scaling.type"));
  const auto factor = number("rope.scaling.factor");
  const auto original = integer("rope.scaling.original_context_length");
  Json scaling = Json::object();
  if (const auto longer = float_vector(gguf_, "rope_factors_long.weight"); !longer.empty()) {
    scaling.set("rope_type", "longrope");
    scaling.set("long_factor", float_list(longer));
    scaling.set("short_factor", float_list(float_vector(gguf_, "rope_factors_short.weight")));
    if (original) scaling.set("original_max_position_embeddings", *original);
    if (const auto attention = number("rope.scaling.attn_factor")) scaling.set("attention_factor", *attention);
    return scaling;
  }
  if (const auto factors = float_vector(gguf_, "rope_freqs.weight"); !factors.empty()) {
    const double theta = number("rope.freq_base").value_or(10000.0);
    const double largest = *std::ranges::max_element(factors);
    int64_t positions = 64;
    while (positions <= kMaxOriginal &&
           !close(factors, llama3_factors(theta, rotary_dim, largest, static_cast<double>(positions))))
      positions *= 2;
    if (positions <= kMaxOriginal) {
      scaling.set("rope_type", "llama3");
      scaling.set("factor", largest);
      scaling.set("low_freq_factor", 1.0);
      scaling.set("high_freq_factor", 4.0);
      scaling.set("original_max_position_embeddings", positions);
    } else {
      // Dividing each frequency by its own factor is what longrope does.
      scaling.set("rope_type", "longrope");
      scaling.set("long_factor", float_list(factors));
      scaling.set("short_factor", float_list(factors));
      scaling.set("attention_factor", 1.0);
    }
    return scaling;
  }
  if (!type || *type == "none" || type->empty()) return Json();
  if (*type == "longrope") return Json();
  if (*type != "linear" && *type != "yarn") {
    fail(unsupported(key_of("rope.scaling.type"), "{}: '{}' is '{}'; none, linear, yarn and longrope are supported",
                     file_, key_of("rope.scaling.type"), shown(*type)));
    return Json();
  }
  if (!factor || !(*factor > 0)) return Json();
  scaling.set("rope_type", *type);
  scaling.set("factor", *factor);
  if (*type == "linear") return scaling;
  if (original) scaling.set("original_max_position_embeddings", *original);
  scaling.set("beta_fast", number("rope.scaling.yarn_beta_fast").value_or(32.0));
  scaling.set("beta_slow", number("rope.scaling.yarn_beta_slow").value_or(1.0));
  if (const auto attention = number("rope.scaling.yarn_attn_factor")) scaling.set("attention_factor", *attention);
  if (const auto all = number("rope.scaling.yarn_log_multiplier")) {
    scaling.set("mscale", 1.0);
    scaling.set("mscale_all_dim", *all);
  }
  if (const auto beta = number("attention.temperature_scale"); beta && *beta != 0)
    scaling.set("llama_4_scaling_beta", *beta);
  return scaling;
}

void GgufConfig::read_rope() {
  const double theta = number("rope.freq_base").value_or(10000.0);
  if (!(theta > 0) || !std::isfinite(theta))
    fail(corrupt_file(key_of("rope.freq_base"), "{}: '{}' is {}, expected a positive number", file_,
                      key_of("rope.freq_base"), theta));
  set("rope_theta", theta);
  set("rope_scaling", rope_scaling());
  if (rotary_dim != head_dim && rotary_dim > 0) partial_rotary("partial_rotary_factor");
}

void GgufConfig::partial_rotary(std::string_view key) {
  if (head_dim > 0) set(key, static_cast<double>(rotary_dim) / static_cast<double>(head_dim));
}

void GgufConfig::read_token_ids() {
  const auto id = [&](std::string_view name) { return gguf_.integer("tokenizer.ggml." + std::string(name)); };
  if (const auto bos = id("bos_token_id")) set("bos_token_id", *bos);
  if (const auto pad = id("padding_token_id")) set("pad_token_id", *pad);
  std::vector<int64_t> ends;
  const auto add = [&](std::optional<int64_t> end) {
    if (end && std::ranges::find(ends, *end) == ends.end()) ends.push_back(*end);
  };
  add(id("eos_token_id"));
  add(id("eot_token_id"));
  add(id("eom_token_id"));
  // Files without eot name the end of a turn only by the token's text.
  static constexpr std::string_view kTurnEnds[] = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",
                                                   "<|eom_id|>"};
  const auto* tokens = gguf_.array<std::string>("tokenizer.ggml.tokens");
  const auto* types = gguf_.array<int64_t>("tokenizer.ggml.token_type");
  if (tokens && types && types->size() == tokens->size()) {
    for (size_t i = 0; i < tokens->size(); ++i) {
      const bool special = (*types)[i] == 3 || (*types)[i] == 4;
      if (special && std::ranges::find(kTurnEnds, (*tokens)[i]) != std::end(kTurnEnds)) add(static_cast<int64_t>(i));
    }
  }
  if (ends.empty()) return;
  if (ends.size() == 1) return set("eos_token_id", ends[0]);
  Json list = Json::array();
  for (const int64_t end : ends) list.push_back(end);
  set("eos_token_id", std::move(list));
}

Result<Json> GgufConfig::finish() {
  set("model_type", architecture_.model_type);
  read_sizes();
  if (error_) return *error_;
  const auto eps = number(architecture_.rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon");
  set(architecture_.eps_key, eps.value_or(1e-5));
  read_rope();
  read_token_ids();
  if (architecture_.extra) architecture_.extra(*this);
  if (error_) return *error_;
  return std::move(config_);
}

Result<Json> gguf_config(const GgufFile& gguf, const GgufArchitecture& architecture, const std::string& file) {
  return GgufConfig(gguf, architecture, file).finish();
}

Json gguf_generation_config(const GgufFile& gguf) {
  Json out;
  const std::pair<const char*, const char*> keys[] = {{"general.sampling.temp", "temperature"},
                                                      {"general.sampling.top_k", "top_k"},
                                                      {"general.sampling.top_p", "top_p"},
                                                      {"general.sampling.min_p", "min_p"},
                                                      {"general.sampling.penalty_repeat", "repetition_penalty"}};
  for (const auto& [from, to] : keys) {
    if (const auto whole = gguf.integer(from))
      out.set(to, *whole);
    else if (const auto number = gguf.number(from))
      out.set(to, *number);
  }
  return out;
}

}  // namespace vedette::weights
