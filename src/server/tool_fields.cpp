// Tools of OpenAI's chat form.
#include <algorithm>

#include "base/error.h"
#include "server/dialect.h"
#include "server/fields.h"

namespace vedette::server {
namespace {

constexpr size_t kMostNameBytes = 256;

Result<text::ToolSpec> read_function(const Json& function, const std::string& path) {
  const Fields fields(function, path + ".");
  text::ToolSpec tool;
  VEDETTE_ASSIGN_OR_RETURN(auto name, fields.string("name"));
  if (!name || name->empty() || name->size() > kMostNameBytes)
    return fields.wrong("name", fmt::format("a name of 1 to {} bytes", kMostNameBytes));
  tool.name = std::move(*name);
  VEDETTE_ASSIGN_OR_RETURN(auto description, fields.string("description"));
  tool.description = description.value_or("");
  VEDETTE_ASSIGN_OR_RETURN(const Json* parameters, fields.object("parameters"));
  if (parameters != nullptr) tool.parameters = *parameters;
  VEDETTE_ASSIGN_OR_RETURN(auto strict, fields.boolean("strict"));
  tool.strict = strict.value_or(false);
  return tool;
}

}  // namespace

Status read_openai_tools(const Json& tools, std::vector<text::ToolSpec>& out, std::vector<std::string>& skipped) {
  if (!tools.is_array()) return wrong_value("tools", "a list", &tools);
  if (tools.as_array().size() > kMostTools)
    return invalid_request("tools", "tools: expected at most {} entries, found {}", kMostTools,
                           tools.as_array().size());
  for (size_t i = 0; i < tools.as_array().size(); ++i) {
    const Json& entry = tools.as_array()[i];
    const std::string path = fmt::format("tools[{}]", i);
    if (!entry.is_object()) return wrong_value(path, "an object", &entry);
    const Fields fields(entry, path + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto type, fields.string("type"));
    if (type && *type != "function") {
      skipped.push_back(*type);
      continue;
    }
    VEDETTE_ASSIGN_OR_RETURN(const Json* function, fields.object("function"));
    if (function == nullptr) return fields.wrong("function", "an object");
    VEDETTE_ASSIGN_OR_RETURN(text::ToolSpec tool, read_function(*function, path + ".function"));
    const auto same = [&](const text::ToolSpec& other) { return other.name == tool.name; };
    if (std::any_of(out.begin(), out.end(), same))
      return invalid_request(path + ".function.name", "{}.function.name: '{}' is there twice; names must differ", path,
                             tool.name);
    out.push_back(std::move(tool));
  }
  return ok_status();
}

}  // namespace vedette::server
