#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "weights/message_text.h"

static_assert(std::endian::native == std::endian::little, "checkpoint readers use little-endian data in place");

namespace vedette::weights {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxRank = 16;
constexpr int kMaxHeaderDepth = 4;  // header, tensor, shape

struct TypeInfo {
  std::string_view name;
  int bits;
  SafetensorsType type;
};
constexpr auto kTypes = std::to_array<TypeInfo>({
    {"F32", 32, SafetensorsType::kF32},      {"F16", 16, SafetensorsType::kF16},
    {"BF16", 16, SafetensorsType::kBF16},    {"U32", 32, SafetensorsType::kU32},
    {"BOOL", 8, SafetensorsType::kOther},    {"U8", 8, SafetensorsType::kOther},
    {"I8", 8, SafetensorsType::kOther},      {"I16", 16, SafetensorsType::kOther},
    {"U16", 16, SafetensorsType::kOther},    {"I32", 32, SafetensorsType::kOther},
    {"I64", 64, SafetensorsType::kOther},    {"U64", 64, SafetensorsType::kOther},
    {"F64", 64, SafetensorsType::kOther},    {"C64", 64, SafetensorsType::kOther},
    {"F8_E5M2", 8, SafetensorsType::kOther}, {"F8_E4M3", 8, SafetensorsType::kOther},
    {"F8_E8M0", 8, SafetensorsType::kOther}, {"F6_E2M3", 6, SafetensorsType::kOther},
    {"F6_E3M2", 6, SafetensorsType::kOther}, {"F4", 4, SafetensorsType::kOther},
});

const TypeInfo* find_type(std::string_view name) {
  const auto at = std::ranges::find(kTypes, name, &TypeInfo::name);
  return at == kTypes.end() ? nullptr : &*at;
}

struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  SafetensorsEntry entry;
};

Error tensor_error(const std::string& file, std::string_view name, const std::string& what) {
  return corrupt_file(shown(name), "{}: tensor '{}': {}", file, shown(name), what);
}

Result<std::vector<int64_t>> read_shape(const Json* shape, const std::string& file, std::string_view name) {
  if (!shape || !shape->is_array())
    return tensor_error(
        file, name,
        fmt::format("'shape' must be an array of integers, found {}", shape ? shape->type_name() : "nothing"));
  if (shape->as_array().size() > kMaxRank)
    return tensor_error(
        file, name, fmt::format("shape has {} dimensions, at most {} are read", shape->as_array().size(), kMaxRank));
  std::vector<int64_t> out;
  for (const Json& dimension : shape->as_array()) {
    if (!dimension.is_int() || dimension.as_int() < 0)
      return tensor_error(file, name, fmt::format("shape holds {}, expected integers from 0", dimension.dump()));
    out.push_back(dimension.as_int());
  }
  return out;
}

Result<uint64_t> read_offset(const Json& value, const std::string& file, std::string_view name) {
  if (!value.is_int() || value.as_int() < 0)
    return tensor_error(file, name, fmt::format("'data_offsets' holds {}, expected integers from 0", value.dump()));
  return static_cast<uint64_t>(value.as_int());
}

// One member of the header against the size of the data section.
Result<Extent> read_entry(std::string_view name, const Json& value, uint64_t data_bytes, const std::string& file) {
  if (!value.is_object())
    return tensor_error(file, name, fmt::format("expected an object in the header, found {}", value.type_name()));
  if (has_control_characters(name))
    return tensor_error(file, name, fmt::format("its name of {} bytes has control characters", name.size()));
  const Json* dtype = value.find("dtype");
  if (!dtype || !dtype->is_string())
    return tensor_error(file, name,
                        fmt::format("'dtype' must be a string, found {}", dtype ? dtype->type_name() : "nothing"));
  const TypeInfo* type = find_type(dtype->as_string());
  if (!type) return tensor_error(file, name, fmt::format("unknown dtype '{}'", shown(dtype->as_string())));
  VEDETTE_ASSIGN_OR_RETURN(auto shape, read_shape(value.find("shape"), file, name));

  std::optional<int64_t> bits = type->bits;
  for (const int64_t dimension : shape)
    if (bits) bits = checked_mul(*bits, dimension);
  if (!bits)
    return tensor_error(file, name, fmt::format("shape {} x {} overflows 64 bits", shape_text(shape), type->name));
  if (*bits % 8 != 0)
    return tensor_error(
        file, name, fmt::format("shape {} {} needs {} bits, not whole bytes", shape_text(shape), type->name, *bits));
  const auto needed = static_cast<uint64_t>(*bits / 8);

  const Json* offsets = value.find("data_offsets");
  if (!offsets || !offsets->is_array() || offsets->as_array().size() != 2)
    return tensor_error(file, name, "'data_offsets' must be an array of two integers");
  VEDETTE_ASSIGN_OR_RETURN(const uint64_t begin, read_offset(offsets->as_array()[0], file, name));
  VEDETTE_ASSIGN_OR_RETURN(const uint64_t end, read_offset(offsets->as_array()[1], file, name));
  if (begin > end) return tensor_error(file, name, fmt::format("offsets {}-{} run backwards", begin, end));
  if (end - begin != needed)
    return tensor_error(file, name,
                        fmt::format("offsets {}-{} hold {} bytes, shape {} {} needs {}", begin, end, end - begin,
                                    shape_text(shape), type->name, needed));
  if (end > data_bytes)
    return tensor_error(
        file, name,
        fmt::format("offsets {}-{} end beyond the {} bytes of data; the file is truncated", begin, end, data_bytes));
  Extent extent{begin, end, {}};
  extent.entry.name = std::string(name);
  extent.entry.type = type->type;
  extent.entry.type_name = std::string(type->name);
  extent.entry.shape = std::move(shape);
  return extent;
}

Status check_metadata(const Json& metadata, const std::string& file) {
  if (!metadata.is_object())
    return corrupt_file("__metadata__", "{}: '__metadata__' must be an object of strings, found {}", file,
                        metadata.type_name());
  for (const auto& [key, value] : metadata.as_object())
    if (!value.is_string())
      return corrupt_file("__metadata__", "{}: '__metadata__.{}' must be a string, found {}", file, shown(key),
                          value.type_name());
  return ok_status();
}

// Data must be covered exactly once: the format allows neither overlaps nor holes.
Status check_coverage(const std::vector<Extent>& extents, uint64_t data_bytes, const std::string& file) {
  uint64_t covered = 0;
  const Extent* previous = nullptr;
  for (const Extent& extent : extents) {
    if (extent.begin < covered)
      return tensor_error(file, extent.entry.name,
                          fmt::format("starts at offset {}, but tensor '{}' ends at {}", extent.begin,
                                      shown(previous->entry.name), covered));
    if (extent.begin > covered)
      return tensor_error(
          file, extent.entry.name,
          fmt::format("starts at offset {}, leaving bytes {}-{} to no tensor", extent.begin, covered, extent.begin));
    covered = extent.end;
    previous = &extent;
  }
  if (covered != data_bytes)
    return corrupt_file("", "{}: tensors cover {} bytes of data, the file holds {}", file, covered, data_bytes);
  return ok_status();
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return out + "]";
}

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < 8)
    return corrupt_file("", "{}: {} bytes, a safetensors file has at least 8 (header length)", file, bytes.size());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  if (header_bytes > kMaxHeaderBytes)
    return corrupt_file("", "{}: header length {} exceeds the format's limit of {}; is this a safetensors file?", file,
                        header_bytes, kMaxHeaderBytes);
  if (header_bytes > bytes.size() - 8)
    return corrupt_file("", "{}: header length {}, but only {} bytes follow; the file is truncated", file, header_bytes,
                        bytes.size() - 8);
  std::string_view header(reinterpret_cast<const char*>(bytes.data()) + 8, header_bytes);
  // Padding after the JSON is spaces by the format; writers that pad with NUL exist.
  while (!header.empty() && (header.back() == '\0' || header.back() == ' ')) header.remove_suffix(1);
  VEDETTE_ASSIGN_OR_RETURN(const Json json, parse_json(header, file + " (header)",
                                                       {.max_bytes = kMaxHeaderBytes, .max_depth = kMaxHeaderDepth}));
  if (!json.is_object()) return corrupt_file("", "{}: header must be a JSON object, found {}", file, json.type_name());

  const auto data = bytes.subspan(8 + header_bytes);
  std::vector<Extent> extents;
  extents.reserve(json.as_object().size());
  for (const auto& [name, value] : json.as_object()) {
    if (name == "__metadata__") {
      VEDETTE_RETURN_IF_ERROR(check_metadata(value, file));
      continue;
    }
    VEDETTE_ASSIGN_OR_RETURN(auto extent, read_entry(name, value, data.size(), file));
    extent.entry.data = data.subspan(extent.begin, extent.end - extent.begin);
    extents.push_back(std::move(extent));
  }
  // Empty tensors before what starts where they do; names make the order, and so the message, the same each time.
  std::ranges::sort(extents, [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end, a.entry.name) < std::tie(b.begin, b.end, b.entry.name);
  });
  VEDETTE_RETURN_IF_ERROR(check_coverage(extents, data.size(), file));

  std::vector<SafetensorsEntry> entries;
  entries.reserve(extents.size());
  for (Extent& extent : extents) entries.push_back(std::move(extent.entry));
  return entries;
}

}  // namespace vedette::weights
