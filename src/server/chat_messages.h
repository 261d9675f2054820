// Messages of OpenAI's chat form as chat templates take them.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "server/job.h"

namespace vedette::server {

// Checks and translates `messages`: developer turns become system turns, text parts are joined by newlines, arguments
// of tool calls become objects where they are JSON (else they stay text), reasoning goes to reasoning_content. A last
// assistant turn without calls is a beginning of the reply where `continue_last` allows it.
// Errors (kInvalidRequest) with the path: wrong types, unknown roles, parts that are no text (images, audio, files:
// this model takes text alone), tool turns without tool_call_id.
Result<Conversation> read_chat_messages(const Json& messages, bool continue_last);

// A function call for a template: {"id", "type": "function", "function": {"name", "arguments"}}.
Json call_json(std::string_view id, std::string_view name, std::string_view arguments);

}  // namespace vedette::server
