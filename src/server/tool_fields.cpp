#include "server/tool_fields.h"

#include <algorithm>

#include "base/error.h"

namespace vedette::server {
namespace {

constexpr size_t kMostNameBytes = 256;
constexpr size_t kMostWarnings = 32;

}  // namespace

Result<text::ToolSpec> read_function(const Fields& fields) {
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

Status add_tool(text::ToolSpec tool, const std::string& path, GenerateJob& job) {
  const auto same = [&](const text::ToolSpec& other) { return other.name == tool.name; };
  if (std::any_of(job.tools.begin(), job.tools.end(), same))
    return invalid_request(path, "{}: '{}' is there twice; names must differ", path, tool.name);
  if (job.tools.size() == kMostTools)
    return invalid_request("tools", "tools: expected at most {} functions, found more", kMostTools);
  job.tools.push_back(std::move(tool));
  return ok_status();
}

void leave_out_tool(std::string_view type, GenerateJob& job) {
  if (job.warnings.size() < kMostWarnings)
    job.warnings.push_back(fmt::format("tools of type '{}' are not run here and were left out", type.substr(0, 60)));
}

Status read_openai_tools(const Json& tools, GenerateJob& job) {
  if (!tools.is_array()) return wrong_value("tools", "a list", &tools);
  for (size_t i = 0; i < tools.as_array().size(); ++i) {
    const Json& entry = tools.as_array()[i];
    const std::string path = fmt::format("tools[{}]", i);
    if (!entry.is_object()) return wrong_value(path, "an object", &entry);
    const Fields fields(entry, path + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto type, fields.string("type"));
    if (type && *type != "function") {
      leave_out_tool(*type, job);
      continue;
    }
    VEDETTE_ASSIGN_OR_RETURN(const Json* function, fields.object("function"));
    if (function == nullptr) return fields.wrong("function", "an object");
    VEDETTE_ASSIGN_OR_RETURN(text::ToolSpec tool, read_function(Fields(*function, path + ".function.")));
    VEDETTE_RETURN_IF_ERROR(add_tool(std::move(tool), path + ".function.name", job));
  }
  return ok_status();
}

Status read_tool_choice(const Fields& fields, Result<std::string> (*name_of)(const Fields& choice), GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(auto parallel, fields.boolean("parallel_tool_calls"));
  job.tool_choice.parallel = parallel.value_or(true);
  const Json* choice = fields.get("tool_choice");
  if (choice == nullptr) return ok_status();
  constexpr std::string_view kExpected = "auto, none, required, or an object that names a function";
  using enum text::ToolChoiceKind;
  if (choice->is_object()) {
    VEDETTE_ASSIGN_OR_RETURN(job.tool_choice.name, name_of(Fields(*choice, "tool_choice.")));
    job.tool_choice.kind = kNamed;
    return ok_status();
  }
  const std::string word = choice->is_string() ? choice->as_string() : "";
  if (word == "auto")
    job.tool_choice.kind = kAuto;
  else if (word == "none")
    job.tool_choice.kind = kNone;
  else if (word == "required" || word == "any")
    job.tool_choice.kind = kRequired;
  else
    return fields.wrong("tool_choice", kExpected);
  return ok_status();
}

}  // namespace vedette::server
