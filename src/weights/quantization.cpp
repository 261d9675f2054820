#include "weights/quantization.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "weights/message_text.h"

namespace vedette::weights {
namespace {

constexpr auto kBits = std::to_array<int>({2, 3, 4, 5, 6, 8});
constexpr auto kGroups = std::to_array<int>({32, 64, 128});

std::string brief(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// {bits, group_size, mode} of one object; missing ones come from `base`.
Result<QuantizationRule> read_rule(const Json& object, const QuantizationRule& base, const std::string& where,
                                   const std::string& path) {
  if (const Json* method = object.find("quant_method"); method && !method->is_null())
    return unsupported(path + ".quant_method", "{}: '{}.quant_method' is {}; only MLX affine quantization is read",
                       where, path, brief(*method));
  if (const Json* mode = object.find("mode"); mode && !mode->is_null()) {
    if (!mode->is_string() || mode->as_string() != "affine")
      return unsupported(path + ".mode", "{}: '{}.mode' is {}; only \"affine\" is supported", where, path,
                         brief(*mode));
  }
  const JsonReader reader(object, where);
  VEDETTE_ASSIGN_OR_RETURN(const int64_t bits, reader.integer("bits", INT32_MIN, INT32_MAX, base.bits));
  VEDETTE_ASSIGN_OR_RETURN(const int64_t group, reader.integer("group_size", INT32_MIN, INT32_MAX, base.group));
  if (!is_affine_bits(bits))
    return unsupported(path + ".bits", "{}: '{}.bits' is {}; 2, 3, 4, 5, 6 and 8 are supported", where, path, bits);
  if (!is_affine_group(group))
    return unsupported(path + ".group_size", "{}: '{}.group_size' is {}; 32, 64 and 128 are supported", where, path,
                       group);
  return QuantizationRule{static_cast<int>(bits), static_cast<int>(group)};
}

ops::DType to_dtype(SafetensorsType type) {
  if (type == SafetensorsType::kF32) return ops::DType::kF32;
  return type == SafetensorsType::kF16 ? ops::DType::kF16 : ops::DType::kBF16;
}

// Bits and group with bits * group == product: as stated if it fits, else the stated group, else the stated bits.
std::optional<QuantizationRule> solve(int64_t product, const std::optional<QuantizationRule>& rule) {
  if (!rule) return std::nullopt;
  if (int64_t{rule->bits} * rule->group == product) return rule;
  if (product % rule->group == 0 && is_affine_bits(product / rule->group))
    return QuantizationRule{static_cast<int>(product / rule->group), rule->group};
  if (product % rule->bits == 0 && is_affine_group(product / rule->bits))
    return QuantizationRule{rule->bits, static_cast<int>(product / rule->bits)};
  return std::nullopt;
}

}  // namespace

bool is_affine_bits(int64_t bits) {
  return std::ranges::find(kBits, bits) != kBits.end();
}
bool is_affine_group(int64_t group) {
  return std::ranges::find(kGroups, group) != kGroups.end();
}

Result<QuantizationConfig> QuantizationConfig::parse(const Json& config, const std::string& where) {
  QuantizationConfig out;
  std::string path = "quantization";
  const Json* object = config.find(path);
  if (!object || object->is_null()) {
    path = "quantization_config";
    object = config.find(path);
  }
  if (!object || object->is_null()) return out;
  if (!object->is_object())
    return unsupported(path, "{}: '{}' is {}; expected an object with bits and group_size", where, path,
                       brief(*object));
  VEDETTE_ASSIGN_OR_RETURN(out.default_, read_rule(*object, {}, where, path));
  for (const auto& [key, value] : object->as_object()) {
    if (key == "bits" || key == "group_size" || key == "mode" || key == "quant_method") continue;
    if (value.is_object()) {
      VEDETTE_ASSIGN_OR_RETURN(out.overrides_[key], read_rule(value, *out.default_, where, path + "." + shown(key)));
    } else if (value.is_bool()) {
      out.overrides_[key] = value.as_bool() ? out.default_ : std::nullopt;
    } else if (key.find('.') != std::string::npos) {
      return unsupported(path + "." + shown(key), "{}: '{}.{}' is {}; expected an object, true or false", where, path,
                         shown(key), brief(value));
    }
  }
  return out;
}

std::optional<QuantizationRule> QuantizationConfig::rule(std::string_view module) const {
  const auto at = overrides_.find(module);
  if (at != overrides_.end() && at->second) return at->second;
  return default_;
}

Result<StoredTensor> join_affine(const SafetensorsEntry& weight, const SafetensorsEntry& scales,
                                 const SafetensorsEntry& biases, const std::optional<QuantizationRule>& rule,
                                 const std::string& file) {
  const std::string& name = weight.name;
  for (const SafetensorsEntry* side : {&scales, &biases}) {
    if (side->type == SafetensorsType::kU32 || side->type == SafetensorsType::kOther)
      return corrupt_file(side->name, "{}: tensor '{}': dtype {}, expected BF16, F16 or F32", file, side->name,
                          side->type_name);
    if (side->type != scales.type || side->shape != scales.shape)
      return corrupt_file(name, "{}: tensor '{}': {} {} does not match '{}' {} {}", file, side->name, side->type_name,
                          shape_text(side->shape), scales.name, scales.type_name, shape_text(scales.shape));
  }
  const bool same_rows = weight.shape.size() == scales.shape.size() && weight.shape.size() >= 2 &&
                         std::equal(weight.shape.begin(), weight.shape.end() - 1, scales.shape.begin());
  const int64_t words = same_rows ? weight.shape.back() : 0;
  const int64_t groups = same_rows ? scales.shape.back() : 0;
  if (!same_rows || words == 0 || groups == 0 || words > (int64_t{1} << 40))
    return corrupt_file(name, "{}: tensor '{}': packed shape {} does not fit scales {}", file, name,
                        shape_text(weight.shape), shape_text(scales.shape));
  if (!rule)
    return corrupt_file(name,
                        "{}: tensor '{}' is quantized (packed {}, scales {}), but config.json has no 'quantization'",
                        file, name, shape_text(weight.shape), shape_text(scales.shape));
  const auto solved = words * 32 % groups == 0 ? solve(words * 32 / groups, rule) : std::nullopt;
  if (!solved)
    return corrupt_file(name,
                        "{}: tensor '{}': packed shape {} with scales {} fits no bits and group size near {} and {}",
                        file, name, shape_text(weight.shape), shape_text(scales.shape), rule->bits, rule->group);

  StoredTensor tensor;
  tensor.file = file;
  tensor.shape = weight.shape;
  tensor.shape.back() = groups * solved->group;
  ops::HostMatrix& matrix = tensor.matrix;
  matrix.name = name;
  matrix.scheme = ops::Scheme::kMlxAffine;
  matrix.rows = 1;
  for (size_t i = 0; i + 1 < weight.shape.size(); ++i) matrix.rows *= weight.shape[i];
  matrix.stored_rows = matrix.rows;
  matrix.cols = tensor.shape.back();
  matrix.bits = solved->bits;
  matrix.group = solved->group;
  matrix.side_type = to_dtype(scales.type);
  matrix.data = weight.data;
  matrix.scales = scales.data;
  matrix.biases = biases.data;
  return tensor;
}

}  // namespace vedette::weights
