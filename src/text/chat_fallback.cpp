#include "text/chat_fallback.h"

#include "base/error.h"

namespace vedette::text {
namespace {

Result<std::string> text_of(const Json* content, size_t index) {
  if (content != nullptr && content->is_string()) return content->as_string();
  if (content == nullptr || !content->is_array())
    return invalid_request(fmt::format("messages[{}].content", index),
                           "messages[{}].content: expected text or a list of text parts, found {}", index,
                           content == nullptr ? "nothing" : content->type_name());
  std::string text;
  for (size_t part = 0; part < content->as_array().size(); ++part) {
    const Json* words = content->as_array()[part].find("text");
    if (words == nullptr || !words->is_string())
      return invalid_request(fmt::format("messages[{}].content[{}]", index, part),
                             "messages[{}].content[{}]: expected a text part; this model reads text only", index, part);
    text += words->as_string();
  }
  return text;
}

}  // namespace

Result<std::string> render_chat_fallback(const Json& messages, const Json& tools, bool add_generation_prompt,
                                         std::string_view bos_token) {
  if (!messages.is_array())
    return invalid_request("messages", "messages: expected an array, found {}", messages.type_name());
  if (tools.is_array() && !tools.as_array().empty())
    return invalid_request("tools", "tools: this checkpoint has no chat template, so tools cannot be written for it");
  std::string prompt(bos_token);
  for (size_t index = 0; index < messages.as_array().size(); ++index) {
    const Json& message = messages.as_array()[index];
    const Json* role = message.find("role");
    if (role == nullptr || !role->is_string())
      return invalid_request(fmt::format("messages[{}].role", index), "messages[{}].role: expected text, found {}",
                             index, role == nullptr ? "nothing" : role->type_name());
    VEDETTE_ASSIGN_OR_RETURN(const std::string text, text_of(message.find("content"), index));
    prompt += role->as_string() + ": " + text + "\n\n";
  }
  if (add_generation_prompt) prompt += "assistant:";
  return prompt;
}

}  // namespace vedette::text
