#include "golden_file.h"

#include <fstream>
#include <sstream>
#include <string_view>

#include "base/json.h"

namespace vedette::golden {
namespace {

Error wrong(std::string_view field, std::string_view expected) {
  return Error{ErrorKind::kCorruptFile, std::string(field) + ": " + std::string(expected) + " expected",
               std::string(field)};
}

Result<const Json::Array*> array_field(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (value == nullptr || !value->is_array()) return wrong(key, "an array");
  return &value->as_array();
}

template <typename T>
Result<std::vector<T>> numbers(const Json::Array& array, std::string_view key) {
  std::vector<T> out;
  for (const Json& value : array) {
    if (!value.is_number()) return wrong(key, "an array of numbers");
    out.push_back(static_cast<T>(value.as_double()));
  }
  return out;
}

template <typename T>
Result<std::vector<T>> numbers(const Json& object, std::string_view key) {
  VEDETTE_ASSIGN_OR_RETURN(const Json::Array* array, array_field(object, key));
  return numbers<T>(*array, key);
}

template <typename T>
Result<std::vector<std::vector<T>>> table(const Json& object, std::string_view key) {
  VEDETTE_ASSIGN_OR_RETURN(const Json::Array* array, array_field(object, key));
  std::vector<std::vector<T>> out;
  for (const Json& row : *array) {
    if (!row.is_array()) return wrong(key, "an array of arrays");
    VEDETTE_ASSIGN_OR_RETURN(std::vector<T> values, numbers<T>(row.as_array(), key));
    out.push_back(std::move(values));
  }
  return out;
}

Result<Case> read_case(const Json& json) {
  Case out;
  VEDETTE_ASSIGN_OR_RETURN(out.prompt, JsonReader(json, "case").string("prompt"));
  VEDETTE_ASSIGN_OR_RETURN(out.prompt_ids, numbers<int32_t>(json, "prompt_ids"));
  VEDETTE_ASSIGN_OR_RETURN(out.ids, numbers<int32_t>(json, "ids"));
  VEDETTE_ASSIGN_OR_RETURN(out.margins, numbers<double>(json, "margins"));
  if (out.ids.size() != out.margins.size()) return wrong("margins", "one number per id");
  return out;
}

}  // namespace

Result<GoldenFile> read_golden_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Error{ErrorKind::kNotFound, path + ": cannot be read", ""};
  std::ostringstream text;
  text << stream.rdbuf();
  VEDETTE_ASSIGN_OR_RETURN(const Json json, parse_json(text.str(), path));
  GoldenFile out;
  VEDETTE_ASSIGN_OR_RETURN(out.model, JsonReader(json, path).string("model"));
  VEDETTE_ASSIGN_OR_RETURN(const Json::Array* cases, array_field(json, "cases"));
  for (const Json& value : *cases) {
    VEDETTE_ASSIGN_OR_RETURN(Case one, read_case(value));
    out.cases.push_back(std::move(one));
  }
  const Json* logits = json.find("logits");
  if (logits == nullptr) return wrong("logits", "an object");
  VEDETTE_ASSIGN_OR_RETURN(out.logits.prompt_ids, numbers<int32_t>(*logits, "prompt_ids"));
  VEDETTE_ASSIGN_OR_RETURN(out.logits.ids, table<int32_t>(*logits, "ids"));
  VEDETTE_ASSIGN_OR_RETURN(out.logits.values, table<double>(*logits, "values"));
  if (out.logits.ids.size() != out.logits.prompt_ids.size() ||
      out.logits.values.size() != out.logits.prompt_ids.size()) {
    return wrong("logits", "one row per prompt id");
  }
  return out;
}

}  // namespace vedette::golden
