#include "server/chat_messages.h"

#include "base/error.h"
#include "server/fields.h"
#include "server/text_parts.h"

namespace vedette::server {
namespace {

constexpr size_t kMostMessages = 100'000;

constexpr std::string_view kTextTypes[] = {"text", "input_text", "output_text", "refusal"};

Result<std::optional<std::string>> read_content(const Fields& fields) {
  const Json* content = fields.get("content");
  if (content == nullptr) return std::optional<std::string>();
  VEDETTE_ASSIGN_OR_RETURN(std::string text,
                           read_text(*content, fields.path("content"), {kTextTypes, /*bare_strings=*/true}));
  return std::optional<std::string>(std::move(text));
}

Result<Json> read_calls(const Json& calls, const std::string& path) {
  Json out = Json::array();
  for (size_t i = 0; i < calls.as_array().size(); ++i) {
    const Json& call = calls.as_array()[i];
    const std::string at = fmt::format("{}[{}]", path, i);
    if (!call.is_object()) return wrong_value(at, "an object", &call);
    const Fields fields(call, at + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto id, fields.string("id"));
    VEDETTE_ASSIGN_OR_RETURN(const Json* function, fields.object("function"));
    if (function == nullptr) return fields.wrong("function", "an object");
    const Fields inner(*function, at + ".function.");
    VEDETTE_ASSIGN_OR_RETURN(auto name, inner.string("name"));
    if (!name || name->empty()) return inner.wrong("name", "a name");
    const Json* arguments = inner.get("arguments");
    if (arguments != nullptr && !arguments->is_string() && !arguments->is_object())
      return inner.wrong("arguments", "a JSON text or an object");
    const std::string text = arguments == nullptr     ? "{}"
                             : arguments->is_string() ? arguments->as_string()
                                                      : arguments->dump();
    out.push_back(call_json(id.value_or(""), *name, text));
  }
  return out;
}

Result<Json> read_message(const Json& message, const std::string& path) {
  if (!message.is_object()) return wrong_value(path, "an object", &message);
  const Fields fields(message, path + ".");
  VEDETTE_ASSIGN_OR_RETURN(auto role, fields.string("role"));
  if (!role) return fields.wrong("role", "a string");
  if (*role == "developer") *role = "system";
  if (*role == "function") *role = "tool";
  if (*role != "system" && *role != "user" && *role != "assistant" && *role != "tool")
    return fields.wrong("role", "one of system, developer, user, assistant, tool");
  VEDETTE_ASSIGN_OR_RETURN(auto content, read_content(fields));
  Json out = Json::object();
  out.set("role", *role);
  out.set("content", content.value_or(""));
  VEDETTE_ASSIGN_OR_RETURN(auto name, fields.string("name"));
  if (name) out.set("name", *name);
  if (*role == "tool") {
    VEDETTE_ASSIGN_OR_RETURN(auto id, fields.string("tool_call_id"));
    if (id) out.set("tool_call_id", *id);
  }
  if (*role == "assistant") {
    VEDETTE_ASSIGN_OR_RETURN(auto reasoning, fields.string("reasoning_content"));
    if (!reasoning) {
      VEDETTE_ASSIGN_OR_RETURN(reasoning, fields.string("reasoning"));
    }
    if (reasoning && !reasoning->empty()) out.set("reasoning_content", *reasoning);
    VEDETTE_ASSIGN_OR_RETURN(const Json* calls, fields.array("tool_calls"));
    if (calls != nullptr && !calls->as_array().empty()) {
      VEDETTE_ASSIGN_OR_RETURN(Json read, read_calls(*calls, path + ".tool_calls"));
      out.set("tool_calls", std::move(read));
    }
  }
  if (!content && *role != "assistant") return fields.wrong("content", "a string or a list of parts");
  return out;
}

}  // namespace

Json call_json(std::string_view id, std::string_view name, std::string_view arguments) {
  Json function = Json::object();
  function.set("name", name);
  auto parsed = parse_json(arguments.empty() ? "{}" : arguments, "arguments");
  function.set("arguments", parsed.ok() && parsed->is_object() ? std::move(*parsed) : Json(arguments));
  Json out = Json::object();
  if (!id.empty()) out.set("id", id);
  out.set("type", "function");
  out.set("function", std::move(function));
  return out;
}

Result<Conversation> read_chat_messages(const Json& messages, bool continue_last) {
  if (!messages.is_array()) return wrong_value("messages", "a list", &messages);
  if (messages.as_array().empty() || messages.as_array().size() > kMostMessages)
    return invalid_request("messages", "messages: expected 1 to {} messages, found {}", kMostMessages,
                           messages.as_array().size());
  Conversation out;
  for (size_t i = 0; i < messages.as_array().size(); ++i) {
    VEDETTE_ASSIGN_OR_RETURN(Json message, read_message(messages.as_array()[i], fmt::format("messages[{}]", i)));
    out.messages.push_back(std::move(message));
  }
  const Json& last = out.messages.as_array().back();
  out.continue_last = continue_last && last.find("role")->as_string() == "assistant" &&
                      last.find("tool_calls") == nullptr && !last.find("content")->as_string().empty();
  return out;
}

}  // namespace vedette::server
