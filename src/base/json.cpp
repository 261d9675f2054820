#include "base/json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette {
namespace {

// Builds a Json from nlohmann's events, so that limits hold while parsing and nothing can throw out.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view where, const JsonLimits& limits) : where_(where), limits_(limits) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(static_cast<int64_t>(value))); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return add(Json(static_cast<int64_t>(value)));
    return add(Json(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return fail("binary value"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override {
    keys_.pop_back();
    return close();
  }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (!keys_.back().insert(value).second) return fail(fmt::format("duplicate key '{}'", value));
    pending_key_ = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
    std::string what = e.what();
    const size_t colon = what.find("syntax error");
    fail(fmt::format("byte {}: {}", position, colon == std::string::npos ? what : what.substr(colon)));
    return false;
  }

  Json root;
  std::string error;

 private:
  bool fail(std::string text) {
    for (char& c : text)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    if (error.empty()) error = fmt::format("{}: invalid JSON: {}", where_, text);
    return false;
  }
  Json* attach(Json value) {
    if (stack_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.as_array().push_back(std::move(value));
      return &parent.as_array().back();
    }
    parent.as_object().emplace_back(std::move(pending_key_), std::move(value));
    return &parent.as_object().back().second;
  }
  bool add(Json value) {
    attach(std::move(value));
    return true;
  }
  bool open(Json container) {
    if (static_cast<int>(stack_.size()) >= limits_.max_depth)
      return fail(fmt::format("nested deeper than {} levels", limits_.max_depth));
    const bool is_object = container.is_object();
    // Only the innermost container grows while it is open, so pointers to outer ones stay valid.
    stack_.push_back(attach(std::move(container)));
    if (is_object) keys_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  std::string_view where_;
  JsonLimits limits_;
  std::vector<Json*> stack_;
  std::vector<std::set<std::string, std::less<>>> keys_;
  std::string pending_key_;
};

void write_string(std::string& out, std::string_view text) {
  if (!is_valid_utf8(text)) return write_string(out, repair_utf8(text));
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        else
          out += c;
    }
  }
  out += '"';
}

void newline(std::string& out, int indent, int depth) {
  if (indent <= 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
}

void write(std::string& out, const Json& value, int indent, int depth) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += fmt::format("{}", value.as_int());
  } else if (value.is_double()) {
    char buffer[40];
    if (!std::isfinite(value.as_double())) {
      out += "null";
      return;
    }
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value.as_double()).ptr;
    const std::string_view digits(buffer, static_cast<size_t>(end - buffer));
    out += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
  } else if (value.is_string()) {
    write_string(out, value.as_string());
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : value.as_array()) {
      if (!first) out += indent > 0 ? "," : ", ";
      first = false;
      newline(out, indent, depth + 1);
      write(out, item, indent, depth + 1);
    }
    if (!first) newline(out, indent, depth);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : value.as_object()) {
      if (!first) out += indent > 0 ? "," : ", ";
      first = false;
      newline(out, indent, depth + 1);
      write_string(out, key);
      out += ": ";
      write(out, item, indent, depth + 1);
    }
    if (!first) newline(out, indent, depth);
    out += '}';
  }
}

}  // namespace

const char* Json::type_name() const {
  static constexpr const char* kNames[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
  return kNames[value_.index()];
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : as_object())
    if (name == key) return &value;
  return nullptr;
}

void Json::set(std::string_view key, Json value) {
  if (is_null()) *this = object();
  for (auto& [name, old] : as_object()) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  as_object().emplace_back(std::string(key), std::move(value));
}

void Json::erase(std::string_view key) {
  if (is_object()) std::erase_if(as_object(), [&](const auto& member) { return member.first == key; });
}

void Json::push_back(Json value) {
  if (is_null()) *this = array();
  as_array().push_back(std::move(value));
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

Result<Json> parse_json(std::string_view text, std::string_view where, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    return corrupt_file("", "{}: {} bytes of JSON, the limit is {}", where, text.size(), limits.max_bytes);
  Builder builder(where, limits);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder) || !builder.error.empty())
    return corrupt_file("", "{}", builder.error.empty() ? fmt::format("{}: invalid JSON", where) : builder.error);
  return std::move(builder.root);
}

bool JsonReader::has(std::string_view key) const {
  const Json* value = object_->find(key);
  return value && !value->is_null();
}

Error JsonReader::wrong(std::string_view key, std::string_view expected, const Json* found) const {
  if (!found) return make_error(kind_, std::string(key), "{}: '{}' is missing; expected {}", where_, key, expected);
  std::string shown = found->dump();
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  return make_error(kind_, std::string(key), "{}: '{}' must be {}, found {} {}", where_, key, expected,
                    found->type_name(), shown);
}

Result<int64_t> JsonReader::integer(std::string_view key, int64_t min, int64_t max,
                                    std::optional<int64_t> fallback) const {
  const Json* value = object_->find(key);
  if ((!value || value->is_null()) && fallback) return *fallback;
  const std::string expected = fmt::format("an integer from {} to {}", min, max);
  if (!value || !value->is_number()) return wrong(key, expected, value);
  int64_t number;
  if (value->is_int()) {
    number = value->as_int();
  } else {
    const double d = value->as_double();
    if (!(d >= -9.0e15 && d <= 9.0e15) || d != std::floor(d)) return wrong(key, expected, value);
    number = static_cast<int64_t>(d);
  }
  if (number < min || number > max) return wrong(key, expected, value);
  return number;
}

Result<double> JsonReader::number(std::string_view key, double min, double max, std::optional<double> fallback) const {
  const Json* value = object_->find(key);
  if ((!value || value->is_null()) && fallback) return *fallback;
  if (!value || !value->is_number() || !(value->as_double() >= min && value->as_double() <= max))
    return wrong(key, fmt::format("a number from {} to {}", min, max), value);
  return value->as_double();
}

Result<bool> JsonReader::boolean(std::string_view key, std::optional<bool> fallback) const {
  const Json* value = object_->find(key);
  if ((!value || value->is_null()) && fallback) return *fallback;
  if (!value || !value->is_bool()) return wrong(key, "true or false", value);
  return value->as_bool();
}

Result<std::string> JsonReader::string(std::string_view key, std::optional<std::string> fallback) const {
  const Json* value = object_->find(key);
  if ((!value || value->is_null()) && fallback) return std::move(*fallback);
  if (!value || !value->is_string()) return wrong(key, "a string", value);
  return value->as_string();
}

}  // namespace vedette
