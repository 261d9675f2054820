// Tools for chat templates that know none: Hermes' form, written into the system text and the turns.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "text/message_parser.h"

namespace vedette::server {

// Tools as chat templates take them: [{"type": "function", "function": {name, description, parameters}}].
Json tools_json(std::span<const text::ToolSpec> tools);

// The system text that lists the tools and says how to call them.
std::string describe_tools(std::span<const text::ToolSpec> tools);

// Assistant turns with tool_calls become text with <tool_call> blocks, tool turns become user turns with
// <tool_response> blocks (neighbouring ones joined).
Json without_tool_turns(const Json& messages);

}  // namespace vedette::server
