#include "text/tools/typed_value.h"

#include "text/tools/json_mender.h"

namespace vedette::text {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxScalar = 32;

void add_type(std::string_view name, ValueTypes& types) {
  types.known = true;
  if (name == "null") types.null = true;
  if (name == "boolean") types.boolean = true;
  if (name == "integer") types.integer = true;
  if (name == "number") types.integer = types.number = true;
  if (name == "string") types.string = true;
  if (name == "array") types.array = true;
  if (name == "object") types.object = true;
}

const Json* follow(const Json* root, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  reference.remove_prefix(2);
  const Json* at = root;
  while (at != nullptr && !reference.empty()) {
    const size_t slash = reference.find('/');
    at = at->find(reference.substr(0, slash));
    reference = slash == std::string_view::npos ? std::string_view() : reference.substr(slash + 1);
  }
  return at;
}

void collect(const Json* schema, const Json* root, int depth, ValueTypes& types) {
  if (schema == nullptr || !schema->is_object() || depth > kMaxDepth) return;
  if (const Json* reference = schema->find("$ref"); reference != nullptr && reference->is_string()) {
    collect(follow(root, reference->as_string()), root, depth + 1, types);
  }
  if (const Json* type = schema->find("type")) {
    if (type->is_string()) add_type(type->as_string(), types);
    if (type->is_array()) {
      for (const Json& name : type->as_array())
        if (name.is_string()) add_type(name.as_string(), types);
    }
  } else if (const Json* values = schema->find("enum"); values != nullptr && values->is_array()) {
    for (const Json& value : values->as_array()) add_type(value.type_name(), types);
  } else if (const Json* value = schema->find("const")) {
    add_type(value->type_name(), types);
  } else if (schema->find("properties") != nullptr) {
    add_type("object", types);
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    const Json* parts = schema->find(key);
    if (parts == nullptr || !parts->is_array()) continue;
    for (const Json& part : parts->as_array()) collect(&part, root, depth + 1, types);
  }
  const Json* nullable = schema->find("nullable");
  if (nullable != nullptr && nullable->is_bool() && nullable->as_bool()) types.null = true;
}

bool whole_number(std::string_view text, std::string& out) {
  if (!is_json_number(text) || text.find_first_of("eE") != std::string_view::npos) return false;
  const size_t dot = text.find('.');
  if (dot != std::string_view::npos && text.find_first_not_of('0', dot + 1) != std::string_view::npos) return false;
  out = text.substr(0, dot);
  return true;
}

bool word(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != lower[i] && text[i] != lower[i] - 'a' + 'A') return false;
  return true;
}

bool valid(const std::string& json) {
  return parse_json(json, "value").ok();
}

std::string untyped(std::string_view raw, std::string_view text, bool any_json) {
  std::string json;
  if (any_json && mend_json(text, json) && valid(json)) return json;
  json.clear();
  const bool scalar = !text.empty() && text.size() <= kMaxScalar && text.find('\n') == std::string_view::npos &&
                      text[0] != '{' && text[0] != '[' && text[0] != '"' && text[0] != '\'';
  if (scalar && mend_json(text, json)) return json;
  return quote_json(raw);
}

}  // namespace

ValueTypes value_types(const Json* schema, const Json* root) {
  ValueTypes types;
  collect(schema, root, 0, types);
  return types;
}

const Json* parameter_schema(const Json& parameters, std::string_view name) {
  const Json* properties = parameters.find("properties");
  return properties == nullptr ? nullptr : properties->find(name);
}

std::string typed_json(std::string_view raw, const ValueTypes& types, bool any_json) {
  const std::string_view text = trim_blank(raw);
  if (!types.known) return untyped(raw, text, any_json);
  std::string json;
  if (types.null && (word(text, "null") || word(text, "none"))) return "null";
  if (types.integer && whole_number(text, json)) return json;
  json.clear();
  if (types.number && mend_json(text, json) && is_json_number(json)) return json;
  if (types.boolean && word(text, "true")) return "true";
  if (types.boolean && word(text, "false")) return "false";
  json.clear();
  const char first = text.empty() ? '\0' : text[0];
  const bool container = (types.array && first == '[') || (types.object && first == '{');
  if (container && mend_json(text, json) && valid(json)) return json;
  return quote_json(raw);
}

std::string retyped_json(std::string_view json, const ValueTypes& types) {
  if (!types.known || json.empty()) return std::string(json);
  if (json[0] == '"') {
    std::string text;
    if (types.string || !unquote_json(json, text)) return std::string(json);
    return typed_json(text, types);
  }
  if (json[0] == '{' || json[0] == '[') return std::string(json);
  return typed_json(json, types);
}

}  // namespace vedette::text
