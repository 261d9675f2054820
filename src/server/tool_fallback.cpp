#include "server/tool_fallback.h"

#include <utility>

namespace vedette::server {
namespace {

std::string text_of(const Json* content) {
  return content != nullptr && content->is_string() ? content->as_string() : "";
}

Json turn(std::string_view role, std::string content) {
  Json out = Json::object();
  out.set("role", role);
  out.set("content", std::move(content));
  return out;
}

std::string call_text(const Json& call) {
  const Json* function = call.find("function");
  Json out = Json::object();
  if (function != nullptr) {
    if (const Json* name = function->find("name")) out.set("name", *name);
    if (const Json* arguments = function->find("arguments")) out.set("arguments", *arguments);
  }
  return "<tool_call>\n" + out.dump() + "\n</tool_call>";
}

}  // namespace

Json tools_json(std::span<const text::ToolSpec> tools) {
  Json out = Json::array();
  for (const text::ToolSpec& tool : tools) {
    Json function = Json::object();
    function.set("name", tool.name);
    function.set("description", tool.description);
    function.set("parameters", tool.parameters.is_null() ? Json::object() : tool.parameters);
    Json entry = Json::object();
    entry.set("type", "function");
    entry.set("function", std::move(function));
    out.push_back(std::move(entry));
  }
  return out;
}

std::string describe_tools(std::span<const text::ToolSpec> tools) {
  std::string out = "You can call functions. Their signatures, one JSON object a line:\n<tools>\n";
  const Json list = tools_json(tools);
  for (const Json& tool : list.as_array()) out += tool.dump() + "\n";
  out +=
      "</tools>\nTo call a function, write its name and arguments as one JSON object between these tags:\n"
      "<tool_call>\n{\"name\": NAME, \"arguments\": {...}}\n</tool_call>";
  return out;
}

Json without_tool_turns(const Json& messages) {
  Json out = Json::array();
  bool joins = false;  // the last turn written is a user turn of responses
  for (const Json& message : messages.as_array()) {
    const std::string role = text_of(message.find("role"));
    const Json* calls = message.find("tool_calls");
    if (role == "tool") {
      std::string block = "<tool_response>\n" + text_of(message.find("content")) + "\n</tool_response>";
      if (joins) {
        Json& last = out.as_array().back();
        last.set("content", last.find("content")->as_string() + "\n" + block);
      } else {
        out.push_back(turn("user", std::move(block)));
      }
      joins = true;
      continue;
    }
    joins = false;
    if (calls == nullptr || !calls->is_array() || calls->as_array().empty()) {
      out.push_back(message);
      continue;
    }
    std::string content = text_of(message.find("content"));
    for (const Json& call : calls->as_array()) content += (content.empty() ? "" : "\n") + call_text(call);
    Json copy = message;
    copy.erase("tool_calls");
    copy.set("content", std::move(content));
    out.push_back(std::move(copy));
  }
  return out;
}

}  // namespace vedette::server
