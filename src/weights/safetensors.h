// Safetensors: 8 bytes of header length, a JSON header, then the data of all tensors without gaps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ops/types.h"

namespace vedette::weights {

enum class SafetensorsType : uint8_t { kF32, kF16, kBF16, kU32, kOther };

struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::kOther;
  std::string type_name;  // as written in the header
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // inside the bytes that were parsed
};

// Checks the whole file: header length, JSON, dtypes, offsets against shape x dtype, overlaps, holes and
// truncation. `file` names the source in messages. Order of the data.
Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

// "[2, 3]" for messages.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace vedette::weights
