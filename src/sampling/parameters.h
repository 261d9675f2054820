// The numbers among SamplingParams: names in requests, range and place of each, once for all who read or check them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/sampling_ranges.h"
#include "sampling/sampling.h"

namespace vedette::sampling {

struct Parameter {
  // The first is that of messages and settings; of several in one request the last counts.
  std::vector<std::string_view> names;
  NumberRange range;
  std::variant<double SamplingParams::*, int64_t SamplingParams::*, int SamplingParams::*> member;
};

std::span<const Parameter> parameters();

}  // namespace vedette::sampling
