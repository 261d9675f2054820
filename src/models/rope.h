// Rotary position tables from config.json: default, linear, llama3, yarn and longrope scaling.
//
// Both generations of keys are read: `rope_theta` and `rope_scaling` at the top, and transformers 5's `rope_parameters`
// (flat, or one object per layer type). "dynamic" is refused: its table depends on the length of the text.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/config_reader.h"
#include "models/spec.h"

namespace vedette::models {

struct RopeRequest {
  int64_t head_dim = 0;
  ops::RopeKind kind = ops::RopeKind::kHalf;
  double theta = 10000;  // where the config has none
  std::string_view theta_key = "rope_theta";
  bool theta_key_only = false;  // `rope_theta` does not stand in for theta_key
  // Which of the nested `rope_parameters` applies; old keys go by the flags below.
  std::string_view layer_type = "full_attention";
  bool scaled = true;  // false: `rope_scaling` is for other layers
  // The part of each head that turns. partial_key empty: the family turns whole heads and anything else is refused.
  std::string_view partial_key = {};
  double partial = 1.0;           // where the config has none
  bool longrope_aliases = false;  // "su" and "yarn" mean longrope (Phi-3)
  bool dynamic_alpha = false;     // "dynamic" with a fixed `alpha` (Hunyuan)
  Json defaults = {};             // parameters where the config has no rope keys at all
};

// A config without any rope keys gets the default table. Errors stick to the reader.
RopeSpec read_rope(ConfigReader& config, const RopeRequest& request);

// A further number of the rope parameters that apply ("llama_4_scaling_beta").
double rope_parameter(ConfigReader& config, const RopeRequest& request, std::string_view key, double min, double max,
                      double fallback);

// The longest text the table is made for: longrope's short factors hold up to the original context.
int64_t rope_context_limit(ConfigReader& config, int64_t context);

}  // namespace vedette::models
