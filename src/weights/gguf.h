// GGUF v2 and v3: metadata, tensor table, data. Format only; meaning is in gguf_config and gguf_tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ops/types.h"

namespace vedette::weights {

struct GgufArray;

// Integers are int64 (an unsigned value beyond that becomes a double), floats keep their width.
using GgufValue = std::variant<int64_t, float, double, bool, std::string, GgufArray>;

struct GgufArray {
  // Arrays of arrays are checked and skipped: no key that is read has them.
  std::variant<std::vector<int64_t>, std::vector<float>, std::vector<double>, std::vector<bool>,
               std::vector<std::string>, std::monostate>
      values;
  size_t size = 0;
};

struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape;  // outermost first; the file's order reversed
  ops::Scheme scheme = ops::Scheme::kF32;
  std::span<const std::byte> data;  // inside the bytes that were parsed
};

struct GgufFile {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;
  // Of element types nothing here reads: name -> "type IQ2_XXS".
  std::map<std::string, std::string, std::less<>> unreadable;

  const GgufValue* find(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // a float as the shortest decimal that rounds to it
  std::optional<bool> boolean(std::string_view key) const;
  const std::string* string(std::string_view key) const;
  template <typename T>
  const std::vector<T>* array(std::string_view key) const {
    const GgufValue* value = find(key);
    const GgufArray* list = value ? std::get_if<GgufArray>(value) : nullptr;
    return list ? std::get_if<std::vector<T>>(&list->values) : nullptr;
  }
};

// Checks the whole file: magic, version, counts and lengths against what is there, duplicate keys and tensors, types,
// shapes, alignment, overlap and truncation. `file` names the source in messages.
Result<GgufFile> parse_gguf(std::span<const std::byte> bytes, const std::string& file);

}  // namespace vedette::weights
