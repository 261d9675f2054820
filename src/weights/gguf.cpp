#include "weights/gguf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"
#include "weights/message_text.h"
#include "weights/safetensors.h"

namespace vedette::weights {
namespace {

constexpr uint64_t kMaxMetadata = 1u << 16;
constexpr uint64_t kMaxTensors = 1u << 20;
constexpr uint64_t kMaxNameBytes = 255;
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxStringBytes = 64u << 20;
constexpr uint32_t kMaxRank = 4;
constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kMaxArrayElements = 1u << 24;
constexpr uint64_t kDefaultAlignment = 32;
constexpr int64_t kMinAlignment = 8;
constexpr uint64_t kMaxAlignment = 1u << 20;

enum class ValueType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
constexpr uint32_t kValueTypes = 13;
// Fewest bytes one value takes in the file.
constexpr std::array<uint64_t, kValueTypes> kMinBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

// Element types by number; readable ones have a scheme.
struct TypeInfo {
  uint32_t number;
  const char* name;
  std::optional<ops::Scheme> scheme;
  int64_t block;  // elements
  int64_t block_bytes;
};
constexpr auto kTypes = std::to_array<TypeInfo>({
    {0, "F32", ops::Scheme::kF32, 1, 4},
    {1, "F16", ops::Scheme::kF16, 1, 2},
    {2, "Q4_0", ops::Scheme::kQ4_0, 32, 18},
    {3, "Q4_1", ops::Scheme::kQ4_1, 32, 20},
    {6, "Q5_0", ops::Scheme::kQ5_0, 32, 22},
    {7, "Q5_1", ops::Scheme::kQ5_1, 32, 24},
    {8, "Q8_0", ops::Scheme::kQ8_0, 32, 34},
    {9, "Q8_1", std::nullopt, 32, 36},
    {10, "Q2_K", ops::Scheme::kQ2_K, 256, 84},
    {11, "Q3_K", ops::Scheme::kQ3_K, 256, 110},
    {12, "Q4_K", ops::Scheme::kQ4_K, 256, 144},
    {13, "Q5_K", ops::Scheme::kQ5_K, 256, 176},
    {14, "Q6_K", ops::Scheme::kQ6_K, 256, 210},
    {15, "Q8_K", std::nullopt, 256, 292},
    {16, "IQ2_XXS", std::nullopt, 256, 66},
    {17, "IQ2_XS", std::nullopt, 256, 74},
    {18, "IQ3_XXS", std::nullopt, 256, 98},
    {19, "IQ1_S", std::nullopt, 256, 50},
    {20, "IQ4_NL", std::nullopt, 32, 18},
    {21, "IQ3_S", std::nullopt, 256, 110},
    {22, "IQ2_S", std::nullopt, 256, 82},
    {23, "IQ4_XS", std::nullopt, 256, 136},
    {24, "I8", std::nullopt, 1, 1},
    {25, "I16", std::nullopt, 1, 2},
    {26, "I32", std::nullopt, 1, 4},
    {27, "I64", std::nullopt, 1, 8},
    {28, "F64", std::nullopt, 1, 8},
    {29, "IQ1_M", std::nullopt, 256, 56},
    {30, "BF16", ops::Scheme::kBF16, 1, 2},
    {34, "TQ1_0", std::nullopt, 256, 54},
    {35, "TQ2_0", std::nullopt, 256, 66},
    {39, "MXFP4", std::nullopt, 32, 17},
    {40, "NVFP4", std::nullopt, 64, 36},
    {41, "Q1_0", std::nullopt, 128, 18},
});

const TypeInfo* find_type(uint32_t number) {
  const auto at = std::ranges::find(kTypes, number, &TypeInfo::number);
  return at == kTypes.end() ? nullptr : &*at;
}

// Reads little-endian values in order; every read is checked against what is left.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  const std::string& file() const { return file_; }

  template <typename T>
  Result<T> value(std::string_view what) {
    if (left() < sizeof(T)) return cut(what, sizeof(T));
    T out;
    std::memcpy(&out, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return out;
  }
  Result<std::string_view> string(std::string_view what, uint64_t max_bytes) {
    VEDETTE_ASSIGN_OR_RETURN(const uint64_t length, value<uint64_t>(what));
    if (length > max_bytes)
      return corrupt_file("", "{}: {}: string of {} bytes, the limit is {}", file_, what, length, max_bytes);
    if (length > left()) return cut(what, length);
    const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return out;
  }
  Error cut(std::string_view what, uint64_t needed) const {
    return corrupt_file("", "{}: {}: needs {} bytes at offset {}, the file has {}; it is truncated", file_, what,
                        needed, at_, bytes_.size());
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  const std::string& file_;
};

template <typename T, typename Out>
Status read_numbers(Cursor& in, uint64_t count, std::string_view what, std::vector<Out>& out) {
  out.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    VEDETTE_ASSIGN_OR_RETURN(const T value, in.value<T>(what));
    if constexpr (std::is_same_v<T, uint64_t>)
      out.push_back(static_cast<Out>(std::min<uint64_t>(value, INT64_MAX)));
    else
      out.push_back(static_cast<Out>(value));
  }
  return ok_status();
}

template <typename T, typename Out>
Result<GgufArray> number_array(Cursor& in, uint64_t count, std::string_view what) {
  std::vector<Out> out;
  VEDETTE_RETURN_IF_ERROR((read_numbers<T, Out>(in, count, what, out)));
  return GgufArray{std::move(out), static_cast<size_t>(count)};
}

Result<GgufArray> string_array(Cursor& in, uint64_t count, std::string_view what) {
  std::vector<std::string> out;
  out.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    VEDETTE_ASSIGN_OR_RETURN(const std::string_view text, in.string(what, kMaxStringBytes));
    out.emplace_back(text);
  }
  return GgufArray{std::move(out), static_cast<size_t>(count)};
}

Result<ValueType> read_type(Cursor& in, std::string_view what) {
  VEDETTE_ASSIGN_OR_RETURN(const uint32_t number, in.value<uint32_t>(what));
  if (number >= kValueTypes)
    return corrupt_file("", "{}: {}: value type {}, known types are 0 to {}", in.file(), what, number, kValueTypes - 1);
  return static_cast<ValueType>(number);
}

Result<GgufArray> read_array(Cursor& in, std::string_view what, int depth) {
  VEDETTE_ASSIGN_OR_RETURN(const ValueType type, read_type(in, what));
  VEDETTE_ASSIGN_OR_RETURN(const uint64_t count, in.value<uint64_t>(what));
  const uint64_t smallest = kMinBytes[static_cast<uint32_t>(type)];
  if (count > kMaxArrayElements || count > in.left() / smallest)
    return corrupt_file("", "{}: {}: array of {} elements of at least {} bytes, {} bytes are left (limit {} elements)",
                        in.file(), what, count, smallest, in.left(), kMaxArrayElements);
  switch (type) {
    case ValueType::kU8:
      return number_array<uint8_t, int64_t>(in, count, what);
    case ValueType::kI8:
      return number_array<int8_t, int64_t>(in, count, what);
    case ValueType::kU16:
      return number_array<uint16_t, int64_t>(in, count, what);
    case ValueType::kI16:
      return number_array<int16_t, int64_t>(in, count, what);
    case ValueType::kU32:
      return number_array<uint32_t, int64_t>(in, count, what);
    case ValueType::kI32:
      return number_array<int32_t, int64_t>(in, count, what);
    case ValueType::kU64:
      return number_array<uint64_t, int64_t>(in, count, what);
    case ValueType::kI64:
      return number_array<int64_t, int64_t>(in, count, what);
    case ValueType::kF32:
      return number_array<float, float>(in, count, what);
    case ValueType::kF64:
      return number_array<double, double>(in, count, what);
    case ValueType::kBool:
      return number_array<int8_t, bool>(in, count, what);
    case ValueType::kString:
      return string_array(in, count, what);
    case ValueType::kArray:
      break;
  }
  if (depth >= kMaxArrayDepth)
    return corrupt_file("", "{}: {}: arrays nested deeper than {} levels", in.file(), what, kMaxArrayDepth);
  for (uint64_t i = 0; i < count; ++i) VEDETTE_RETURN_IF_ERROR(read_array(in, what, depth + 1));
  return GgufArray{std::monostate{}, static_cast<size_t>(count)};
}

template <typename T>
Result<GgufValue> integer_value(Cursor& in, std::string_view what) {
  VEDETTE_ASSIGN_OR_RETURN(const T value, in.value<T>(what));
  return GgufValue(static_cast<int64_t>(value));
}

Result<GgufValue> read_value(Cursor& in, ValueType type, std::string_view what) {
  switch (type) {
    case ValueType::kU8:
      return integer_value<uint8_t>(in, what);
    case ValueType::kI8:
      return integer_value<int8_t>(in, what);
    case ValueType::kU16:
      return integer_value<uint16_t>(in, what);
    case ValueType::kI16:
      return integer_value<int16_t>(in, what);
    case ValueType::kU32:
      return integer_value<uint32_t>(in, what);
    case ValueType::kI32:
      return integer_value<int32_t>(in, what);
    case ValueType::kI64:
      return integer_value<int64_t>(in, what);
    case ValueType::kU64: {
      VEDETTE_ASSIGN_OR_RETURN(const uint64_t value, in.value<uint64_t>(what));
      if (value > static_cast<uint64_t>(INT64_MAX)) return GgufValue(static_cast<double>(value));
      return GgufValue(static_cast<int64_t>(value));
    }
    case ValueType::kF32: {
      VEDETTE_ASSIGN_OR_RETURN(const float value, in.value<float>(what));
      return GgufValue(value);
    }
    case ValueType::kF64: {
      VEDETTE_ASSIGN_OR_RETURN(const double value, in.value<double>(what));
      return GgufValue(value);
    }
    case ValueType::kBool: {
      VEDETTE_ASSIGN_OR_RETURN(const uint8_t value, in.value<uint8_t>(what));
      if (value > 1) return corrupt_file("", "{}: {}: boolean holds {}, expected 0 or 1", in.file(), what, value);
      return GgufValue(value == 1);
    }
    case ValueType::kString: {
      VEDETTE_ASSIGN_OR_RETURN(const std::string_view text, in.string(what, kMaxStringBytes));
      return GgufValue(std::string(text));
    }
    case ValueType::kArray:
      break;
  }
  VEDETTE_ASSIGN_OR_RETURN(auto array, read_array(in, what, 1));
  return GgufValue(std::move(array));
}

struct TensorInfo {
  GgufTensor tensor;
  const TypeInfo* type = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

Error tensor_error(const std::string& file, std::string_view name, const std::string& what) {
  return corrupt_file(shown(name), "{}: tensor '{}': {}", file, shown(name), what);
}

Result<TensorInfo> read_tensor_info(Cursor& in, uint64_t index, uint64_t count) {
  const std::string where = fmt::format("tensor {} of {}", index + 1, count);
  VEDETTE_ASSIGN_OR_RETURN(const std::string_view name, in.string(where + " (name)", kMaxNameBytes));
  if (name.empty() || !is_valid_utf8(name) || has_control_characters(name))
    return corrupt_file("", "{}: {}: name '{}' of {} bytes is {}", in.file(), where, shown(name), name.size(),
                        name.empty()          ? "empty"
                        : is_valid_utf8(name) ? "with control characters"
                                              : "not UTF-8");
  VEDETTE_ASSIGN_OR_RETURN(const uint32_t rank, in.value<uint32_t>(where));
  if (rank == 0 || rank > kMaxRank)
    return tensor_error(in.file(), name, fmt::format("{} dimensions, expected 1 to {}", rank, kMaxRank));
  TensorInfo info;
  info.tensor.name = std::string(name);
  std::optional<int64_t> elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    VEDETTE_ASSIGN_OR_RETURN(const uint64_t dimension, in.value<uint64_t>(where));
    if (dimension == 0 || dimension > static_cast<uint64_t>(INT64_MAX))
      return tensor_error(in.file(), name,
                          fmt::format("dimension {} is {}, expected 1 to {}", i, dimension, INT64_MAX));
    info.tensor.shape.push_back(static_cast<int64_t>(dimension));
    if (elements) elements = checked_mul(*elements, static_cast<int64_t>(dimension));
  }
  VEDETTE_ASSIGN_OR_RETURN(const uint32_t type_number, in.value<uint32_t>(where));
  VEDETTE_ASSIGN_OR_RETURN(info.offset, in.value<uint64_t>(where));
  info.type = find_type(type_number);
  if (!info.type)
    return unsupported(info.tensor.name,
                       "{}: tensor '{}': type number {} is unknown; supported are F32, F16, BF16, Q4_0, "
                       "Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K",
                       in.file(), shown(name), type_number);
  const int64_t row = info.tensor.shape.front();
  if (row % info.type->block != 0)
    return tensor_error(
        in.file(), name,
        fmt::format("rows of {} elements, {} needs a multiple of {}", row, info.type->name, info.type->block));
  std::ranges::reverse(info.tensor.shape);
  auto bytes = elements ? checked_mul(*elements / info.type->block, info.type->block_bytes) : std::nullopt;
  if (!bytes)
    return tensor_error(in.file(), name,
                        fmt::format("shape {} x {} overflows 64 bits", shape_text(info.tensor.shape), info.type->name));
  info.bytes = static_cast<uint64_t>(*bytes);
  return info;
}

Result<uint64_t> read_alignment(const GgufFile& gguf, const std::string& file) {
  const GgufValue* value = gguf.find("general.alignment");
  if (!value) return kDefaultAlignment;
  const int64_t* number = std::get_if<int64_t>(value);
  if (!number || *number < kMinAlignment || static_cast<uint64_t>(*number) > kMaxAlignment ||
      (*number & (*number - 1)) != 0)
    return corrupt_file("general.alignment", "{}: 'general.alignment' is {}, expected a power of two from {} to {}",
                        file, number ? std::to_string(*number) : "not an integer", kMinAlignment, kMaxAlignment);
  return static_cast<uint64_t>(*number);
}

// Each tensor inside the data, aligned, and none over another.
Status check_placement(std::vector<TensorInfo>& infos, uint64_t alignment, uint64_t data_bytes,
                       const std::string& file) {
  for (const TensorInfo& info : infos) {
    const std::string& name = info.tensor.name;
    if (info.offset % alignment != 0)
      return tensor_error(file, name,
                          fmt::format("offset {} is no multiple of the alignment {}", info.offset, alignment));
    const auto end = checked_add(info.offset, info.bytes);
    if (!end || *end > data_bytes)
      return tensor_error(
          file, name,
          fmt::format("{} bytes ({} {}) at offset {} of the data, which has {}; the file is "
                      "truncated",
                      info.bytes, shape_text(info.tensor.shape), info.type->name, info.offset, data_bytes));
  }
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& info : infos) order.push_back(&info);
  std::ranges::sort(order, {}, &TensorInfo::offset);
  for (size_t i = 1; i < order.size(); ++i) {
    const uint64_t end = order[i - 1]->offset + order[i - 1]->bytes;
    if (order[i]->offset < end)
      return tensor_error(file, order[i]->tensor.name,
                          fmt::format("starts at offset {}, but tensor '{}' ends at {}", order[i]->offset,
                                      shown(order[i - 1]->tensor.name), end));
  }
  return ok_status();
}

Status read_metadata(Cursor& in, uint64_t count, GgufFile& gguf) {
  for (uint64_t i = 0; i < count; ++i) {
    VEDETTE_ASSIGN_OR_RETURN(const std::string_view key,
                             in.string(fmt::format("metadata key {} of {}", i + 1, count), kMaxKeyBytes));
    const std::string what = fmt::format("'{}'", shown(key));
    VEDETTE_ASSIGN_OR_RETURN(const ValueType type, read_type(in, what));
    VEDETTE_ASSIGN_OR_RETURN(auto value, read_value(in, type, what));
    if (!gguf.metadata.emplace(key, std::move(value)).second)
      return corrupt_file(shown(key), "{}: metadata key {} appears twice (again as number {})", in.file(), what, i + 1);
  }
  return ok_status();
}

Status read_header(Cursor& in, GgufFile& gguf, uint64_t& tensor_count, uint64_t& metadata_count) {
  if (in.left() < 24) return corrupt_file("", "{}: {} bytes, a GGUF file has at least 24", in.file(), in.left());
  VEDETTE_ASSIGN_OR_RETURN(const uint32_t magic, in.value<uint32_t>("magic"));
  if (magic != 0x46554747)
    return corrupt_file("", "{}: starts with {:#010x}, a GGUF file starts with 0x46554747 ('GGUF')", in.file(), magic);
  VEDETTE_ASSIGN_OR_RETURN(gguf.version, in.value<uint32_t>("version"));
  if ((gguf.version & 0xffffu) == 0 && gguf.version != 0)
    return unsupported("", "{}: a big-endian file (version word {:#x}); convert it to little-endian", in.file(),
                       gguf.version);
  if (gguf.version != 2 && gguf.version != 3)
    return unsupported("", "{}: GGUF version {}; versions 2 and 3 are supported", in.file(), gguf.version);
  VEDETTE_ASSIGN_OR_RETURN(tensor_count, in.value<uint64_t>("tensor count"));
  VEDETTE_ASSIGN_OR_RETURN(metadata_count, in.value<uint64_t>("metadata count"));
  if (tensor_count > kMaxTensors || tensor_count > in.left() / 32)
    return corrupt_file("", "{}: {} tensors declared, {} bytes are left for their table (limit {})", in.file(),
                        tensor_count, in.left(), kMaxTensors);
  if (metadata_count > kMaxMetadata || metadata_count > in.left() / 13)
    return corrupt_file("", "{}: {} metadata keys declared, {} bytes are left for them (limit {})", in.file(),
                        metadata_count, in.left(), kMaxMetadata);
  return ok_status();
}

}  // namespace

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto at = metadata.find(key);
  return at == metadata.end() ? nullptr : &at->second;
}

std::optional<int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  const int64_t* number = value ? std::get_if<int64_t>(value) : nullptr;
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* number = std::get_if<int64_t>(value)) return static_cast<double>(*number);
  const auto* narrow = std::get_if<float>(value);
  if (!narrow) return std::nullopt;
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, *narrow).ptr;
  double out = static_cast<double>(*narrow);
  std::from_chars(digits, end, out);
  return out;
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  const bool* flag = value ? std::get_if<bool>(value) : nullptr;
  return flag ? std::optional(*flag) : std::nullopt;
}

const std::string* GgufFile::string(std::string_view key) const {
  const GgufValue* value = find(key);
  return value ? std::get_if<std::string>(value) : nullptr;
}

Result<GgufFile> parse_gguf(std::span<const std::byte> bytes, const std::string& file) {
  Cursor in(bytes, file);
  GgufFile gguf;
  uint64_t tensor_count = 0;
  uint64_t metadata_count = 0;
  VEDETTE_RETURN_IF_ERROR(read_header(in, gguf, tensor_count, metadata_count));
  VEDETTE_RETURN_IF_ERROR(read_metadata(in, metadata_count, gguf));
  VEDETTE_ASSIGN_OR_RETURN(const uint64_t alignment, read_alignment(gguf, file));
  std::vector<TensorInfo> infos;
  infos.reserve(tensor_count);
  std::map<std::string, uint64_t, std::less<>> seen;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    VEDETTE_ASSIGN_OR_RETURN(auto info, read_tensor_info(in, i, tensor_count));
    const auto [at, fresh] = seen.emplace(info.tensor.name, i);
    if (!fresh)
      return tensor_error(file, info.tensor.name,
                          fmt::format("appears twice, as number {} and {}", at->second + 1, i + 1));
    infos.push_back(std::move(info));
  }
  const uint64_t data_begin = std::min<uint64_t>(round_up<uint64_t>(in.position(), alignment), bytes.size());
  const auto data = bytes.subspan(data_begin);
  VEDETTE_RETURN_IF_ERROR(check_placement(infos, alignment, data.size(), file));
  for (TensorInfo& info : infos) {
    if (!info.type->scheme) {
      gguf.unreadable.emplace(info.tensor.name, fmt::format("type {}", info.type->name));
      continue;
    }
    info.tensor.scheme = *info.type->scheme;
    info.tensor.data = data.subspan(info.offset, info.bytes);
    gguf.tensors.push_back(std::move(info.tensor));
  }
  return gguf;
}

}  // namespace vedette::weights
