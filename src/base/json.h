// A JSON value and a parser for untrusted text (limits on size, depth, duplicate keys, strict UTF-8).
//
// The library's heavy header stays inside json.cpp. Numbers without fraction or exponent that fit
// are kept as int64; others are double.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace vedette {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // document order; keys unique

  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}                     // NOLINT(google-explicit-constructor)
  Json(bool value) : value_(value) {}                           // NOLINT(google-explicit-constructor)
  Json(int value) : value_(static_cast<int64_t>(value)) {}      // NOLINT(google-explicit-constructor)
  Json(int64_t value) : value_(value) {}                        // NOLINT(google-explicit-constructor)
  Json(double value) : value_(value) {}                         // NOLINT(google-explicit-constructor)
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT(google-explicit-constructor)
  Json(std::string value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Json(Array value) : value_(std::move(value)) {}               // NOLINT(google-explicit-constructor)
  Json(Object value) : value_(std::move(value)) {}              // NOLINT(google-explicit-constructor)
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }

  bool is_null() const { return value_.index() == 0; }
  bool is_bool() const { return value_.index() == 1; }
  bool is_int() const { return value_.index() == 2; }
  bool is_double() const { return value_.index() == 3; }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return value_.index() == 4; }
  bool is_array() const { return value_.index() == 5; }
  bool is_object() const { return value_.index() == 6; }
  const char* type_name() const;  // "null", "boolean", "integer", "number", "string", "array", "object"

  // Each requires the matching is_*(); as_double accepts an integer.
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_int() const { return std::get<int64_t>(value_); }
  double as_double() const { return is_int() ? static_cast<double>(as_int()) : std::get<double>(value_); }
  const std::string& as_string() const { return std::get<std::string>(value_); }
  const Array& as_array() const { return std::get<Array>(value_); }
  Array& as_array() { return std::get<Array>(value_); }
  const Object& as_object() const { return std::get<Object>(value_); }
  Object& as_object() { return std::get<Object>(value_); }

  // Member of an object, or nullptr (also when this is no object). A stored null is returned as such.
  const Json* find(std::string_view key) const;
  // Sets or replaces a member; turns null into an object first.
  void set(std::string_view key, Json value);
  void erase(std::string_view key);
  void push_back(Json value);

  // One line, UTF-8 kept as it is, control characters escaped, each ill-formed stretch of bytes U+FFFD: always valid
  // JSON. indent > 0: pretty. NaN and infinities become null.
  std::string dump(int indent = 0) const;

 private:
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> value_;
};

struct JsonLimits {
  size_t max_bytes = 64u << 20;
  int max_depth = 64;
};

// Parses one document. `where` names the source in messages ("config.json", "request body").
// Errors (kCorruptFile): invalid UTF-8, syntax with byte position, a duplicate key, depth, size.
Result<Json> parse_json(std::string_view text, std::string_view where, const JsonLimits& limits = {});

// Typed reading of one object's fields; messages name the source and the field path, what was
// expected and what was found. A missing or null field gives the fallback, or an error if there is none.
class JsonReader {
 public:
  JsonReader(const Json& object, std::string where, ErrorKind kind = ErrorKind::kCorruptFile)
      : object_(&object), where_(std::move(where)), kind_(kind) {}

  bool has(std::string_view key) const;  // present and not null
  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max, std::optional<int64_t> fallback = {}) const;
  Result<double> number(std::string_view key, double min, double max, std::optional<double> fallback = {}) const;
  Result<bool> boolean(std::string_view key, std::optional<bool> fallback = {}) const;
  Result<std::string> string(std::string_view key, std::optional<std::string> fallback = {}) const;
  const std::string& where() const { return where_; }
  const Json& json() const { return *object_; }

 private:
  Error wrong(std::string_view key, std::string_view expected, const Json* found) const;
  const Json* object_;
  std::string where_;
  ErrorKind kind_;
};

}  // namespace vedette
