// A chat format for checkpoints without a template (base models).
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace vedette::text {

// Plain text: `BOS`, then for each message "role: content" and an empty line, then "assistant:" if a reply is to be
// generated. A message's content is text or a list of {"type": "text", "text": ...} parts; roles are written as given.
//
//   user: What is the capital of France?
//
//   assistant:
//
// Errors (kInvalidRequest): messages is no array, a message has no role or no text, a part is no text, or tools are
// given, which the format cannot express.
Result<std::string> render_chat_fallback(const Json& messages, const Json& tools, bool add_generation_prompt,
                                         std::string_view bos_token);

// The text that ends a turn in this format, a stop string for generation.
inline constexpr std::string_view kChatFallbackStop = "\nuser:";

}  // namespace vedette::text
