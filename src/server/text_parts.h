// Lists of typed parts ("blocks" in Anthropic's words), which the messages of every dialect hold, and their texts.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "server/fields.h"

namespace vedette::server {

// One entry of such a list.
struct Part {
  std::string path;
  Fields fields;
  std::string type;
};

// What a dialect takes for text.
struct TextParts {
  std::span<const std::string_view> types;
  bool bare_strings = false;  // a string in the list stands for a part
};

// Errors (kInvalidRequest) with the path: no object, no type.
Result<Part> read_part(const Json& part, const std::string& path);
// The text of a part of one of these types, under the name that its type has for it; other types are refused by name.
Result<std::string> text_of_part(const Part& part, std::span<const std::string_view> types);
// A string, or a list of parts whose texts are joined by newlines.
Result<std::string> read_text(const Json& content, const std::string& path, const TextParts& accepted);

}  // namespace vedette::server
