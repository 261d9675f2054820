#include "models/config_reader.h"

#include <array>

namespace vedette::models {

namespace {

struct NamedActivation {
  std::string_view name;
  ops::Activation kind;
};

constexpr std::array<NamedActivation, 11> kActivations{{
    {"silu", ops::Activation::kSilu},
    {"swish", ops::Activation::kSilu},
    {"gelu", ops::Activation::kGeluErf},
    {"gelu_python", ops::Activation::kGeluErf},
    {"gelu_new", ops::Activation::kGeluTanh},
    {"gelu_fast", ops::Activation::kGeluTanh},
    {"gelu_pytorch_tanh", ops::Activation::kGeluTanh},
    {"gelu_python_tanh", ops::Activation::kGeluTanh},
    {"relu", ops::Activation::kRelu},
    {"relu2", ops::Activation::kRelu2},
    {"xielu", ops::Activation::kXielu},
}};

const Json& text_config(const weights::Checkpoint& checkpoint) {
  const Json* text = checkpoint.config.find("text_config");
  return text && text->is_object() ? *text : checkpoint.config;
}

std::string source_name(const weights::Checkpoint& checkpoint, bool nested) {
  std::string name = checkpoint.path;
  if (checkpoint.format != "gguf") name += "/config.json";
  return nested ? name + ": text_config" : name;
}

std::string shown(const Json& value) {
  std::string text = value.dump();
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

}  // namespace

ConfigReader::ConfigReader(const weights::Checkpoint& checkpoint)
    : checkpoint_(checkpoint),
      json_(&text_config(checkpoint)),
      nested_(json_ != &checkpoint.config),
      where_(source_name(checkpoint, nested_)) {}

const Json* ConfigReader::find(std::string_view key) const {
  const Json* value = json_->find(key);
  return value && !value->is_null() ? value : nullptr;
}

bool ConfigReader::is_null(std::string_view key) const {
  const Json* value = json_->find(key);
  return value && value->is_null();
}

std::string_view ConfigReader::spelled(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys)
    if (has(key)) return key;
  return *keys.begin();
}

int64_t ConfigReader::integer(std::string_view key, int64_t min, int64_t max, std::optional<int64_t> fallback) {
  return take(JsonReader(*json_, where_).integer(key, min, max, fallback), min);
}

double ConfigReader::number(std::string_view key, double min, double max, std::optional<double> fallback) {
  return take(JsonReader(*json_, where_).number(key, min, max, fallback), min);
}

double ConfigReader::number_or_off(std::string_view key, double max, double fallback) {
  return is_null(key) ? 0 : number(key, 0, max, fallback);
}

bool ConfigReader::boolean(std::string_view key, std::optional<bool> fallback) {
  return take(JsonReader(*json_, where_).boolean(key, fallback), false);
}

std::string ConfigReader::string(std::string_view key, std::optional<std::string> fallback) {
  return take(JsonReader(*json_, where_).string(key, std::move(fallback)), std::string());
}

ops::Activation ConfigReader::activation(std::string_view key, std::string_view fallback) {
  const std::string name = string(key, std::string(fallback));
  std::string known;
  for (const NamedActivation& activation : kActivations) {
    if (activation.name == name) return activation.kind;
    known += known.empty() ? "known: " : ", ";
    known += activation.name;
  }
  refuse(key, Json(name), known);
  return ops::Activation::kSilu;
}

bool ConfigReader::flag_or_stored(std::string_view key, std::string_view tensor) {
  return boolean(key, stored(tensor));
}

int64_t ConfigReader::sliding_window(int64_t fallback) {
  if (is_null("sliding_window")) return 0;
  return integer("sliding_window", 0, int64_t{1} << 30, fallback);
}

void ConfigReader::apply_array(std::string_view key, int64_t min, int64_t max, std::vector<int64_t>& values) {
  const Json* array = find(key);
  if (!array) return;
  bool good = array->is_array() && array->as_array().size() >= values.size();
  for (size_t i = 0; good && i < values.size(); ++i) {
    const Json& value = array->as_array()[i];
    good = value.is_int() && value.as_int() >= min && value.as_int() <= max;
    if (good) values[i] = value.as_int();
  }
  if (!good)
    fail(corrupt_file(std::string(key), "{}: '{}' must be an array of {} integers from {} to {}, found {}", where_, key,
                      values.size(), min, max, shown(*array)));
}

void ConfigReader::apply_layer_types(int64_t window, std::vector<int>& windows) {
  const Json* types = find("layer_types");
  if (!types) return;
  if (!types->is_array() || types->as_array().size() < windows.size()) {
    fail(corrupt_file("layer_types", "{}: 'layer_types' must be an array with one entry per layer ({}), found {}",
                      where_, windows.size(), shown(*types)));
    return;
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    const Json& type = types->as_array()[i];
    const bool sliding = type.is_string() && type.as_string() == "sliding_attention";
    const bool full = type.is_string() && type.as_string() == "full_attention";
    if (!sliding && !full) return refuse("layer_types", type, "known: full_attention, sliding_attention");
    if (sliding && window == 0) return refuse("layer_types", type, "'sliding_window' gives no window for it");
    windows[i] = sliding ? static_cast<int>(window) : 0;
  }
}

void ConfigReader::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void ConfigReader::refuse(std::string_view key, const Json& value, std::string_view supported) {
  fail(unsupported(std::string(key), "{}: '{}' is {}, which is not supported here; {}", where_, key, shown(value),
                   supported));
}

void ConfigReader::refuse_if_true(std::string_view key) {
  if (boolean(key, false)) refuse(key, Json(true), "only false");
}

Result<DecoderSpec> ConfigReader::finish(DecoderSpec spec) {
  if (error_) return *error_;
  return spec;
}

}  // namespace vedette::models
