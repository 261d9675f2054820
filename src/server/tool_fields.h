// Tools and the choice among them, as the dialects' requests name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "server/fields.h"
#include "server/job.h"

namespace vedette::server {

// Tools of one request; longer lists are errors.
inline constexpr size_t kMostTools = 512;

// {name, description, parameters, strict} of OpenAI's forms.
Result<text::ToolSpec> read_function(const Fields& fields);
// One tool more: names must differ. path: of its name.
Status add_tool(text::ToolSpec tool, const std::string& path, GenerateJob& job);
// A tool of a type that is not run here: told in x_vedette.
void leave_out_tool(std::string_view type, GenerateJob& job);
// Function tools of OpenAI's chat form, {"type": "function", "function": {...}}; those of other types are left out.
Status read_openai_tools(const Json& tools, GenerateJob& job);
// parallel_tool_calls and tool_choice of OpenAI's forms: auto, none, required (any says the same), or an object of
// which name_of reads the tool's name.
Status read_tool_choice(const Fields& fields, Result<std::string> (*name_of)(const Fields& choice), GenerateJob& job);

}  // namespace vedette::server
