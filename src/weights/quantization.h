// MLX affine quantization: config.json's `quantization`, and weight + scales + biases joined to one tensor.
//
// weight = scale * integer + bias per group of columns; integers are packed into uint32 words from the low bits up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace vedette::weights {

struct QuantizationRule {
  int bits = 4;
  int group = 64;
};

bool is_affine_bits(int64_t bits);    // 2, 3, 4, 5, 6, 8
bool is_affine_group(int64_t group);  // 32, 64, 128

// What config.json says about quantization. Immutable after parse.
class QuantizationConfig {
 public:
  // `quantization`, else `quantization_config`. Errors (kUnsupported): another mode or method, bits or groups outside
  // the lists above, each with the key named; (kCorruptFile): wrong types.
  static Result<QuantizationConfig> parse(const Json& config, const std::string& where);

  bool present() const { return default_.has_value(); }
  // Rule for a module path ("model.layers.0.mlp.up_proj"); none where nothing is stated.
  std::optional<QuantizationRule> rule(std::string_view module) const;

 private:
  std::optional<QuantizationRule> default_;
  std::map<std::string, std::optional<QuantizationRule>, std::less<>> overrides_;
};

// Joins a triple. The stored shapes decide where the configuration disagrees with them; where they leave a choice
// (bits x group is all they fix) the configuration does. Errors name the tensor and both shapes.
Result<StoredTensor> join_affine(const SafetensorsEntry& weight, const SafetensorsEntry& scales,
                                 const SafetensorsEntry& biases, const std::optional<QuantizationRule>& rule,
                                 const std::string& file);

}  // namespace vedette::weights
