#include "server/text_parts.h"

#include <algorithm>

#include "base/error.h"

namespace vedette::server {
namespace {

constexpr size_t kMostTypeBytes = 60;  // of a name that is repeated in an error

}  // namespace

Result<Part> read_part(const Json& part, const std::string& path) {
  if (!part.is_object()) return wrong_value(path, "an object", &part);
  Fields fields(part, path + ".");
  VEDETTE_ASSIGN_OR_RETURN(auto type, fields.string("type"));
  if (!type) return fields.wrong("type", "a string");
  return Part{path, std::move(fields), std::move(*type)};
}

Result<std::string> text_of_part(const Part& part, std::span<const std::string_view> types) {
  if (std::find(types.begin(), types.end(), part.type) == types.end())
    return invalid_request(part.path, "{}: this model takes text alone, found a part of type '{}'; leave it out",
                           part.path, part.type.substr(0, kMostTypeBytes));
  const std::string_view key = part.type == "refusal" || part.type == "thinking" ? std::string_view(part.type) : "text";
  VEDETTE_ASSIGN_OR_RETURN(auto text, part.fields.string(key));
  if (!text) return part.fields.wrong(key, "a string");
  return std::move(*text);
}

Result<std::string> read_text(const Json& content, const std::string& path, const TextParts& accepted) {
  if (content.is_string()) return content.as_string();
  if (!content.is_array()) return wrong_value(path, "a string or a list of parts", &content);
  std::string out;
  for (size_t i = 0; i < content.as_array().size(); ++i) {
    const Json& entry = content.as_array()[i];
    std::string text;
    if (accepted.bare_strings && entry.is_string()) {
      text = entry.as_string();
    } else {
      VEDETTE_ASSIGN_OR_RETURN(const Part part, read_part(entry, fmt::format("{}[{}]", path, i)));
      VEDETTE_ASSIGN_OR_RETURN(text, text_of_part(part, accepted.types));
    }
    out += (out.empty() ? "" : "\n") + text;
  }
  return out;
}

}  // namespace vedette::server
