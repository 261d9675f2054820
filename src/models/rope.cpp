// Formulas: YaRN (arXiv 2309.00071), LongRoPE (arXiv 2402.13753), Llama 3's frequency-dependent factor. All in float32
// where the published implementation is, so that tables agree to the last bits.
#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace vedette::models {

namespace {

constexpr double kMaxContext = 1e9;

// The object with the parameters that apply, or nullptr, and how messages name it.
struct Parameters {
  const Json* object = nullptr;
  std::string where;
};

Parameters find_parameters(const ConfigReader& config, const RopeRequest& request) {
  const Json* scaling = config.find("rope_scaling");
  if (request.scaled && scaling && scaling->is_object() && !scaling->as_object().empty())
    return {scaling, config.where() + ": rope_scaling"};
  const Json* parameters = config.find("rope_parameters");
  if (!parameters || !parameters->is_object()) {
    const bool silent = !config.has("rope_theta") && request.defaults.is_object();
    return silent ? Parameters{&request.defaults, config.where()} : Parameters{};
  }
  const std::string where = config.where() + ": rope_parameters";
  bool nested = false;
  for (const auto& [key, value] : parameters->as_object()) nested |= value.is_object();
  if (!nested) return {parameters, where};
  const Json* inner = parameters->find(request.layer_type);
  if (!inner || !inner->is_object()) return {};
  return {inner, where + "." + std::string(request.layer_type)};
}

// Reads one rope table; errors go to the reader.
class RopeReader {
 public:
  RopeReader(ConfigReader& config, const RopeRequest& request)
      : config_(config), request_(request), parameters_(find_parameters(config, request)) {}

  std::string type() {
    std::string name = text("rope_type", text("type", "default"));
    if (request_.longrope_aliases && (name == "su" || name == "yarn")) name = "longrope";
    return name;
  }

  double original_context() {
    if (config_.has("original_max_position_embeddings"))
      return config_.number("original_max_position_embeddings", 1, kMaxContext);
    return number("original_max_position_embeddings", 1, kMaxContext, max_context());
  }

  RopeSpec read() {
    RopeSpec rope;
    rope.kind = request_.kind;
    rope.rotary_dim = rotary_dim();
    dim_ = rope.rotary_dim;
    base_ = theta();
    const std::string name = type();
    if (name == "dynamic" && request_.dynamic_alpha && has("alpha")) {
      const double alpha = number("alpha", 1e-3, 1e9, 1.0);
      base_ *= std::pow(alpha, static_cast<double>(dim_) / std::max(dim_ - 2, 1));
      rope.inverse_frequencies = plain();
    } else if (name == "default") {
      rope.inverse_frequencies = plain();
    } else if (name == "linear") {
      rope.inverse_frequencies = linear();
    } else if (name == "llama3") {
      rope.inverse_frequencies = llama3();
    } else if (name == "yarn") {
      rope.inverse_frequencies = yarn(rope.scale);
    } else if (name == "longrope") {
      rope.inverse_frequencies = longrope(rope.scale);
    } else {
      refuse_type(name);
    }
    return rope;
  }

  double number(std::string_view key, double min, double max, std::optional<double> fallback) {
    static const Json kEmpty = Json::object();
    const Json& object = parameters_.object ? *parameters_.object : kEmpty;
    auto result =
        JsonReader(object, parameters_.object ? parameters_.where : config_.where()).number(key, min, max, fallback);
    if (result.ok()) return *result;
    config_.fail(std::move(result).error());
    return min;
  }

 private:
  bool has(std::string_view key) const {
    const Json* value = parameters_.object ? parameters_.object->find(key) : nullptr;
    return value && !value->is_null();
  }

  std::string text(std::string_view key, std::string fallback) {
    if (!parameters_.object) return fallback;
    auto result = JsonReader(*parameters_.object, parameters_.where).string(key, fallback);
    if (result.ok()) return *result;
    config_.fail(std::move(result).error());
    return fallback;
  }

  double max_context() {
    return config_.number(config_.spelled({"max_position_embeddings", "n_positions"}), 1, kMaxContext, 2048);
  }

  double theta() {
    constexpr double kMin = 1.0, kMax = 1e15;
    if (has("rope_theta")) return number("rope_theta", kMin, kMax, {});
    const std::string_view other = request_.theta_key_only ? request_.theta_key : "rope_theta";
    return config_.number(config_.spelled({request_.theta_key, other}), kMin, kMax, request_.theta);
  }

  int rotary_dim() {
    double part = request_.partial;
    const std::string_view key = request_.partial_key.empty() ? "partial_rotary_factor" : request_.partial_key;
    if (has("partial_rotary_factor"))
      part = number("partial_rotary_factor", 0, 1, {});
    else
      part = config_.number(config_.spelled({key, "partial_rotary_factor"}), 0, 1, part);
    if (request_.partial_key.empty() && part != 1.0)
      config_.refuse("partial_rotary_factor", Json(part), "heads of this family turn as a whole (1.0)");
    const int dim = static_cast<int>(static_cast<double>(request_.head_dim) * part);
    if (dim < 2 || dim % 2 != 0) {
      config_.fail(corrupt_file(std::string(key),
                                "{}: {} of a head's {} elements turn; an even number from 2 is needed", config_.where(),
                                dim, request_.head_dim));
      return 2;
    }
    return dim;
  }

  void refuse_type(const std::string& name) {
    config_.fail(unsupported("rope_type",
                             "{}: 'rope_type' is \"{}\", which is not supported here; known: default, linear, llama3, "
                             "yarn, longrope",
                             parameters_.object ? parameters_.where : config_.where(), name));
  }

  // base^(2i / dim)
  std::vector<float> powers() const {
    std::vector<float> out(static_cast<size_t>(dim_ / 2));
    const float base = static_cast<float>(base_);
    for (size_t i = 0; i < out.size(); ++i) {
      const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim_);
      out[i] = static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
    return out;
  }

  std::vector<float> plain() const {
    std::vector<float> out = powers();
    for (float& value : out) value = 1.0f / value;
    return out;
  }

  double factor() { return number("factor", 1e-3, 1e6, {}); }

  std::vector<float> linear() {
    std::vector<float> out = plain();
    const float divisor = static_cast<float>(factor());
    for (float& value : out) value /= divisor;
    return out;
  }

  // Long wavelengths are stretched by the factor, short ones kept, those between blended.
  std::vector<float> llama3() {
    std::vector<float> out = plain();
    const float stretch = static_cast<float>(factor());
    const double low = number("low_freq_factor", 1e-6, 1e6, {});
    const double high = number("high_freq_factor", 1e-6, 1e6, {});
    const double original = original_context();
    const float low_wavelength = static_cast<float>(original / low);
    const float high_wavelength = static_cast<float>(original / high);
    for (float& value : out) {
      const float wavelength = static_cast<float>(2 * std::numbers::pi) / value;
      if (wavelength < high_wavelength) continue;
      const float stretched = value / stretch;
      if (wavelength > low_wavelength) {
        value = stretched;
        continue;
      }
      const float smooth =
          (static_cast<float>(original) / wavelength - static_cast<float>(low)) / static_cast<float>(high - low);
      value = (1.0f - smooth) * value / stretch + smooth * value;
    }
    return out;
  }

  static double yarn_magnitude(double scale, double mscale) {
    return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
  }

  // The (fractional) pair whose wavelength fits `rotations` times into the original context.
  double correction_dim(double rotations, double original) const {
    return dim_ * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base_));
  }

  std::vector<float> yarn(float& scale) {
    const double original = original_context();
    const double stretch = has("factor") ? factor() : max_context() / original;
    const double mscale = number("mscale", 0, 1e3, 0), mscale_all = number("mscale_all_dim", 0, 1e3, 0);
    if (has("attention_factor"))
      scale = static_cast<float>(number("attention_factor", 0, 1e3, {}));
    else if (mscale != 0 && mscale_all != 0)
      scale = static_cast<float>(yarn_magnitude(stretch, mscale) / yarn_magnitude(stretch, mscale_all));
    else
      scale = static_cast<float>(yarn_magnitude(stretch, 1));
    if (base_ <= 1) {
      config_.fail(corrupt_file("rope_theta", "{}: yarn needs a rope_theta above 1, found {}", config_.where(), base_));
      return plain();
    }
    double fast = number("beta_fast", 0, 1e6, 32), slow = number("beta_slow", 0, 1e6, 1);
    if (fast == 0) fast = 32;
    if (slow == 0) slow = 1;
    double low = correction_dim(fast, original), high = correction_dim(slow, original);
    const Json* truncate = parameters_.object ? parameters_.object->find("truncate") : nullptr;
    if (!truncate || !truncate->is_bool() || truncate->as_bool()) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(dim_ - 1));
    if (low == high) high += 0.001;
    std::vector<float> out = powers();
    for (size_t i = 0; i < out.size(); ++i) {
      const float ramp =
          std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0f, 1.0f);
      const float keep = 1.0f - ramp;
      const float stretched = 1.0f / (static_cast<float>(stretch) * out[i]);
      out[i] = stretched * (1.0f - keep) + (1.0f / out[i]) * keep;
    }
    return out;
  }

  // Short factors only (see rope_context_limit).
  std::vector<float> longrope(float& scale) {
    const double original = original_context();
    const double stretch = has("factor") ? factor() : max_context() / original;
    if (has("attention_factor"))
      scale = static_cast<float>(number("attention_factor", 0, 1e3, {}));
    else
      scale = stretch <= 1 ? 1.0f : static_cast<float>(std::sqrt(1 + std::log(stretch) / std::log(original)));
    std::vector<float> out = powers();
    const std::vector<float> factors = factor_list("short_factor", out.size());
    if (factors.size() != out.size()) return out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = 1.0f / (factors[i] * out[i]);
    return out;
  }

  std::vector<float> factor_list(std::string_view key, size_t count) {
    std::vector<float> out;
    const Json* list = parameters_.object ? parameters_.object->find(key) : nullptr;
    if (list && list->is_array()) {
      for (const Json& value : list->as_array())
        out.push_back(value.is_number() ? static_cast<float>(value.as_double()) : 0.0f);
    }
    const bool positive = std::all_of(out.begin(), out.end(), [](float f) { return f > 0 && std::isfinite(f); });
    if (out.size() == count && positive) return out;
    config_.fail(corrupt_file(std::string(key), "{}: '{}' must be an array of {} positive numbers, found {}",
                              config_.where(), key, count,
                              positive ? std::to_string(out.size()) + " of them" : std::string("others")));
    return {};
  }

  ConfigReader& config_;
  const RopeRequest& request_;
  Parameters parameters_;
  int dim_ = 2;
  double base_ = 10000;
};

}  // namespace

RopeSpec read_rope(ConfigReader& config, const RopeRequest& request) {
  return RopeReader(config, request).read();
}

double rope_parameter(ConfigReader& config, const RopeRequest& request, std::string_view key, double min, double max,
                      double fallback) {
  return RopeReader(config, request).number(key, min, max, fallback);
}

int64_t rope_context_limit(ConfigReader& config, int64_t context) {
  const RopeRequest request{.longrope_aliases = true};
  RopeReader reader(config, request);
  if (reader.type() != "longrope") return context;
  return std::min(context, static_cast<int64_t>(reader.original_context()));
}

}  // namespace vedette::models
