#include "server/fields.h"

#include <cmath>

#include "base/error.h"

namespace vedette::server {
namespace {

constexpr size_t kShownBytes = 60;

std::string shown(const Json* found) {
  if (found == nullptr) return "nothing";
  if (found->is_array() || found->is_object()) return std::string("an ") + found->type_name();
  std::string text = found->dump();
  if (text.size() > kShownBytes) {
    text.resize(kShownBytes);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
    text += "...";
  }
  return text;
}

std::string number_text(double value) {
  return std::abs(value) < 1e15 && value == std::floor(value) ? fmt::format("{}", static_cast<int64_t>(value))
                                                              : fmt::format("{}", value);
}

std::string range_text(std::string_view kind, double min, double max) {
  return fmt::format("{} from {} to {}", kind, number_text(min), number_text(max));
}

}  // namespace

Error wrong_value(const std::string& path, std::string_view expected, const Json* found) {
  return invalid_request(path, "{}: expected {}, found {}", path, expected, shown(found));
}

const Json* Fields::get(std::string_view key) const {
  const Json* value = object_->find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Error Fields::wrong(std::string_view key, std::string_view expected) const {
  return wrong_value(path(key), expected, get(key));
}

Result<std::optional<int64_t>> Fields::integer(std::string_view key, int64_t min, int64_t max) const {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<int64_t>();
  int64_t number = 0;
  const bool whole = value->is_int() || (value->is_double() && std::abs(value->as_double()) < 9e15 &&
                                         value->as_double() == std::floor(value->as_double()));
  if (whole) number = value->is_int() ? value->as_int() : static_cast<int64_t>(value->as_double());
  if (!whole || number < min || number > max)
    return wrong(key, range_text("an integer", static_cast<double>(min), static_cast<double>(max)));
  return std::optional<int64_t>(number);
}

Result<std::optional<double>> Fields::number(std::string_view key, double min, double max) const {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number() || !(value->as_double() >= min && value->as_double() <= max))
    return wrong(key, range_text("a number", min, max));
  return std::optional<double>(value->as_double());
}

Result<std::optional<bool>> Fields::boolean(std::string_view key) const {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_bool()) return wrong(key, "true or false");
  return std::optional<bool>(value->as_bool());
}

Result<std::optional<std::string>> Fields::string(std::string_view key) const {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong(key, "a string");
  return std::optional<std::string>(value->as_string());
}

Result<std::optional<std::vector<std::string>>> Fields::strings(std::string_view key, size_t most) const {
  using Strings = std::vector<std::string>;
  const Json* value = get(key);
  if (value == nullptr) return std::optional<Strings>();
  if (value->is_string()) return std::optional<Strings>(Strings{value->as_string()});
  if (!value->is_array()) return wrong(key, "a string or a list of strings");
  if (value->as_array().size() > most) return wrong(key, fmt::format("at most {} strings", most));
  Strings out;
  for (size_t i = 0; i < value->as_array().size(); ++i) {
    const Json& item = value->as_array()[i];
    if (!item.is_string()) return wrong_value(fmt::format("{}[{}]", path(key), i), "a string", &item);
    out.push_back(item.as_string());
  }
  return std::optional<Strings>(std::move(out));
}

Result<const Json*> Fields::object(std::string_view key) const {
  const Json* value = get(key);
  if (value != nullptr && !value->is_object()) return wrong(key, "an object");
  return value;
}

Result<const Json*> Fields::array(std::string_view key) const {
  const Json* value = get(key);
  if (value != nullptr && !value->is_array()) return wrong(key, "a list");
  return value;
}

Status Fields::store(std::string_view key, NumberRange range, double& out) const {
  VEDETTE_ASSIGN_OR_RETURN(const auto value, number(key, range.min, range.max));
  out = value.value_or(out);
  return ok_status();
}

Status Fields::store(std::string_view key, NumberRange range, int64_t& out) const {
  VEDETTE_ASSIGN_OR_RETURN(const auto value,
                           integer(key, static_cast<int64_t>(range.min), static_cast<int64_t>(range.max)));
  out = value.value_or(out);
  return ok_status();
}

Status Fields::store(std::string_view key, NumberRange range, int& out) const {
  int64_t value = out;
  VEDETTE_RETURN_IF_ERROR(store(key, range, value));
  out = static_cast<int>(value);
  return ok_status();
}

}  // namespace vedette::server
