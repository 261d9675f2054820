// Anthropic messages: https://docs.anthropic.com/en/api/messages
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "server/chat_messages.h"
#include "server/dialect.h"
#include "server/dialects/openai.h"
#include "server/fields.h"
#include "server/prompt_builder.h"
#include "server/text_parts.h"
#include "server/thinking_signature.h"
#include "server/tool_fields.h"

namespace vedette::server {
namespace {

using PartKind = text::MessagePart::Kind;

constexpr std::string_view kKnown[] = {
    "model",    "messages",           "system",          "max_tokens",          "stream",
    "tools",    "tool_choice",        "thinking",        "output_config",       "output_format",
    "metadata", "context_management", "service_tier",    "container",           "mcp_servers",
    "betas",    "reasoning_effort",   "enable_thinking", "chat_template_kwargs"};

Json error_body(const Error& error, int status) {
  const char* type = status == 401   ? "authentication_error"
                     : status == 403 ? "permission_error"
                     : status == 404 ? "not_found_error"
                     : status == 413 ? "request_too_large"
                     : status == 503 ? "overloaded_error"
                     : status >= 500 ? "api_error"
                                     : "invalid_request_error";
  Json inner = Json::object();
  inner.set("type", type);
  inner.set("message", error.message);
  if (!error.field.empty()) inner.set("param", error.field);
  Json out = Json::object();
  out.set("type", "error");
  out.set("error", std::move(inner));
  return out;
}

const char* stop_reason(const ChoiceAnswer& choice) {
  if (!choice.calls.empty()) return "tool_use";
  if (choice.reason == engine::FinishReason::kLength) return "max_tokens";
  return choice.stop_text.empty() ? "end_turn" : "stop_sequence";
}

Json stop_sequence(const ChoiceAnswer& choice) {
  return choice.calls.empty() && !choice.stop_text.empty() ? Json(choice.stop_text) : Json();
}

Json usage_json(int64_t prompt, int64_t cached, int64_t output) {
  Json out = Json::object();
  out.set("input_tokens", prompt - cached);
  out.set("cache_creation_input_tokens", 0);
  out.set("cache_read_input_tokens", cached);
  out.set("output_tokens", output);
  return out;
}

Json text_block(std::string_view text) {
  Json out = Json::object();
  out.set("type", "text");
  out.set("text", text);
  return out;
}

Json thinking_block(std::string_view text, std::string_view signature) {
  Json out = Json::object();
  out.set("type", "thinking");
  out.set("thinking", text);
  out.set("signature", signature);
  return out;
}

// Arguments as an object; what is no object is kept whole under one name, so that nothing is lost.
Json input_of(const CallAnswer& call) {
  auto parsed = parse_json(call.arguments.empty() ? "{}" : call.arguments, "arguments");
  if (parsed.ok() && parsed->is_object()) return std::move(*parsed);
  Json out = Json::object();
  out.set("_malformed_arguments", call.arguments);
  return out;
}

Json call_block(const CallAnswer& call) {
  Json out = Json::object();
  out.set("type", "tool_use");
  out.set("id", "toolu_" + call.id);
  out.set("name", call.name);
  out.set("input", input_of(call));
  return out;
}

class MessagesWriter final : public AnswerWriter {
 public:
  explicit MessagesWriter(bool omit_thinking) : omit_thinking_(omit_thinking) {}

  Json body(const JobStart& start, const JobAnswer& answer) override {
    const ChoiceAnswer& choice = answer.choices.front();
    Json content = Json::array();
    for (const AnswerItem& item : choice.items) {
      if (item.kind == AnswerItem::Kind::kReasoning)
        content.push_back(omit_thinking_ ? thinking_block("", thinking_signature(item.text))
                                         : thinking_block(item.text, thinking_signature("")));
      else if (item.kind == AnswerItem::Kind::kContent)
        content.push_back(text_block(item.text));
      else
        content.push_back(call_block(choice.calls[item.call]));
    }
    if (content.as_array().empty() && answer.completion_tokens > 0) content.push_back(text_block(""));
    Json out = message(start, std::move(content));
    out.set("stop_reason", stop_reason(choice));
    out.set("stop_sequence", stop_sequence(choice));
    out.set("usage", usage_json(answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens));
    out.set("x_vedette", answer.x_vedette);
    return out;
  }

  // message_start waits for the first event, which tells what the cache held.
  void begin(const JobStart&, std::string&) override {}

  void event(const JobEvent& event, const JobStart& start, std::string& out) override {
    if (!started_) {
      const int64_t cached = event.kind == JobEvent::Kind::kProgress ? event.prefilled : 0;
      open_message(start, cached, out);
    }
    if (event.kind != JobEvent::Kind::kText) return;
    for (const text::MessagePart& part : event.parts) add(part, start, out);
  }

  void finish(const JobStart& start, const JobAnswer& answer, std::string& out) override {
    const ChoiceAnswer& choice = answer.choices.front();
    if (!started_) open_message(start, answer.cached_tokens, out);
    close_block(out);
    // Without tokens (max_tokens 0) there is no block either.
    if (index_ == 0 && answer.completion_tokens > 0) {
      open_block(Block::kText, text_block(""), out);
      close_block(out);
    }
    Json delta = Json::object();
    delta.set("stop_reason", stop_reason(choice));
    delta.set("stop_sequence", stop_sequence(choice));
    Json frame = Json::object();
    frame.set("type", "message_delta");
    frame.set("delta", std::move(delta));
    frame.set("usage", usage_json(answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens));
    frame.set("x_vedette", answer.x_vedette);
    send("message_delta", frame, out);
    Json end = Json::object();
    end.set("type", "message_stop");
    send("message_stop", end, out);
  }

  void fail(const Error& error, std::string& out) override { send("error", error_body(error, status_of(error)), out); }

  void keep_alive(std::string& out) override {
    Json ping = Json::object();
    ping.set("type", "ping");
    send("ping", ping, out);
  }

 private:
  enum class Block : uint8_t { kNone, kThinking, kText, kCall };

  static void send(std::string_view name, const Json& frame, std::string& out) { append_sse(out, name, frame.dump()); }

  static Json message(const JobStart& start, Json content) {
    Json out = Json::object();
    out.set("id", "msg_" + start.id);
    out.set("type", "message");
    out.set("role", "assistant");
    out.set("model", start.model);
    out.set("content", std::move(content));
    return out;
  }

  void open_message(const JobStart& start, int64_t cached, std::string& out) {
    started_ = true;
    Json inner = message(start, Json::array());
    inner.set("stop_reason", Json());
    inner.set("stop_sequence", Json());
    inner.set("usage", usage_json(static_cast<int64_t>(start.prompts.front().size()), cached, 0));
    Json frame = Json::object();
    frame.set("type", "message_start");
    frame.set("message", std::move(inner));
    send("message_start", frame, out);
  }

  void open_block(Block kind, Json block, std::string& out) {
    close_block(out);
    open_ = kind;
    Json frame = Json::object();
    frame.set("type", "content_block_start");
    frame.set("index", index_);
    frame.set("content_block", std::move(block));
    send("content_block_start", frame, out);
  }

  void delta(std::string_view type, std::string_view key, std::string_view value, std::string& out) const {
    Json inner = Json::object();
    inner.set("type", type);
    inner.set(key, value);
    Json frame = Json::object();
    frame.set("type", "content_block_delta");
    frame.set("index", index_);
    frame.set("delta", std::move(inner));
    send("content_block_delta", frame, out);
  }

  void close_block(std::string& out) {
    if (open_ == Block::kNone) return;
    if (open_ == Block::kThinking) delta("signature_delta", "signature", thinking_signature(hidden_), out);
    hidden_.clear();
    open_ = Block::kNone;
    Json frame = Json::object();
    frame.set("type", "content_block_stop");
    frame.set("index", index_++);
    send("content_block_stop", frame, out);
  }

  void add(const text::MessagePart& part, const JobStart& start, std::string& out) {
    switch (part.kind) {
      case PartKind::kReasoning:
        if (open_ != Block::kThinking) open_block(Block::kThinking, thinking_block("", ""), out);
        if (omit_thinking_)
          hidden_ += part.text;
        else
          delta("thinking_delta", "thinking", part.text, out);
        break;
      case PartKind::kContent:
        if (open_ != Block::kText) open_block(Block::kText, text_block(""), out);
        delta("text_delta", "text", part.text, out);
        break;
      case PartKind::kCallBegin: {
        CallAnswer call;
        call.id = start.call_ids[0][static_cast<size_t>(part.call)];
        call.name = part.text;
        open_block(Block::kCall, call_block(call), out);
        break;
      }
      case PartKind::kArguments:
        delta("input_json_delta", "partial_json", part.text, out);
        break;
      case PartKind::kCallEnd:
        close_block(out);
        break;
    }
  }

  const bool omit_thinking_;
  std::string hidden_;  // reasoning of the open block that is not shown
  bool started_ = false;
  Block open_ = Block::kNone;
  int64_t index_ = 0;
};

constexpr std::string_view kTextTypes[] = {"text"};
constexpr std::string_view kWrittenTypes[] = {"text", "thinking"};  // by the assistant

Result<std::string> read_text_blocks(const Json& content, const std::string& path) {
  return read_text(content, path, {kTextTypes});
}

Json turn(std::string_view role, std::string_view content) {
  Json out = Json::object();
  out.set("role", role);
  out.set("content", content);
  return out;
}

// One Anthropic message becomes one or more template turns.
class TurnReader {
 public:
  explicit TurnReader(Json& messages) : messages_(messages) {}

  Status read(const Json& message, const std::string& path) {
    if (!message.is_object()) return wrong_value(path, "an object", &message);
    const Fields fields(message, path + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto role, fields.string("role"));
    if (!role || (*role != "user" && *role != "assistant" && *role != "system"))
      return fields.wrong("role", "user, assistant or system");
    const Json* content = fields.get("content");
    if (content == nullptr) return fields.wrong("content", "a string or a list of blocks");
    if (*role == "system") return read_system(*content, fields.path("content"));
    finish();
    if (content->is_string()) {
      messages_.push_back(turn(*role, content->as_string()));
      return ok_status();
    }
    if (!content->is_array()) return fields.wrong("content", "a string or a list of blocks");
    return *role == "user" ? read_user(*content, fields.path("content"))
                           : read_assistant(*content, fields.path("content"));
  }

  // After the last message.
  void finish() {
    if (reminders_.empty()) return;
    Json& last = messages_.as_array().back();
    last.set("content", last.find("content")->as_string() + reminders_);
    reminders_.clear();
  }

 private:
  // A system turn inside the conversation: a reminder within the user's turn, which every template knows.
  Status read_system(const Json& content, const std::string& path) {
    VEDETTE_ASSIGN_OR_RETURN(std::string text, read_text_blocks(content, path));
    drop_volatile_lines(text);
    const std::string reminder = "<system-reminder>\n" + text + "\n</system-reminder>";
    if (!messages_.as_array().empty()) {
      if (messages_.as_array().back().find("role")->as_string() == "user") {
        reminders_ += "\n\n" + reminder;
        return ok_status();
      }
    }
    messages_.push_back(turn("user", reminder));
    return ok_status();
  }

  // Answers of tools first, then the text.
  Status read_user(const Json& blocks, const std::string& path) {
    std::string text;
    bool has_text = false;
    for (size_t i = 0; i < blocks.as_array().size(); ++i) {
      VEDETTE_ASSIGN_OR_RETURN(const Part block, read_part(blocks.as_array()[i], fmt::format("{}[{}]", path, i)));
      if (block.type == "tool_result") {
        VEDETTE_RETURN_IF_ERROR(read_result(block.fields));
        continue;
      }
      VEDETTE_ASSIGN_OR_RETURN(const std::string piece, text_of_part(block, kTextTypes));
      text += (has_text ? "\n" : "") + piece;
      has_text = true;
    }
    if (has_text) messages_.push_back(turn("user", text));
    return ok_status();
  }

  Status read_result(const Fields& fields) {
    VEDETTE_ASSIGN_OR_RETURN(auto id, fields.string("tool_use_id"));
    if (!id) return fields.wrong("tool_use_id", "the id of a tool_use block");
    std::string text;
    if (const Json* content = fields.get("content")) {
      VEDETTE_ASSIGN_OR_RETURN(text, read_text_blocks(*content, fields.path("content")));
    }
    VEDETTE_ASSIGN_OR_RETURN(auto is_error, fields.boolean("is_error"));
    Json out = turn("tool", (is_error.value_or(false) ? "Error: " : "") + text);
    out.set("tool_call_id", *id);
    messages_.push_back(std::move(out));
    return ok_status();
  }

  Status read_assistant(const Json& blocks, const std::string& path) {
    std::string text, reasoning;
    Json calls = Json::array();
    for (size_t i = 0; i < blocks.as_array().size(); ++i) {
      VEDETTE_ASSIGN_OR_RETURN(const Part block, read_part(blocks.as_array()[i], fmt::format("{}[{}]", path, i)));
      if (block.type == "text" || block.type == "thinking") {
        VEDETTE_ASSIGN_OR_RETURN(std::string piece, text_of_part(block, kWrittenTypes));
        if (block.type == "thinking" && piece.empty()) {
          VEDETTE_ASSIGN_OR_RETURN(auto signature, block.fields.string("signature"));
          piece = hidden_thinking(signature.value_or(""));
        }
        std::string& into = block.type == "text" ? text : reasoning;
        into += (into.empty() ? "" : "\n") + piece;
      } else if (block.type == "tool_use") {
        VEDETTE_ASSIGN_OR_RETURN(auto id, block.fields.string("id"));
        VEDETTE_ASSIGN_OR_RETURN(auto name, block.fields.string("name"));
        if (!name || name->empty()) return block.fields.wrong("name", "a name");
        VEDETTE_ASSIGN_OR_RETURN(const Json* input, block.fields.object("input"));
        calls.push_back(call_json(id.value_or(""), *name, input == nullptr ? "{}" : input->dump()));
      }
      // Redacted thinking and blocks of server tools carry nothing that a template renders.
    }
    Json out = turn("assistant", text);
    if (!reasoning.empty()) out.set("reasoning_content", reasoning);
    if (!calls.as_array().empty()) out.set("tool_calls", std::move(calls));
    messages_.push_back(std::move(out));
    return ok_status();
  }

  Json& messages_;
  std::string reminders_;  // to come after the last turn's text
};

Result<Conversation> read_conversation(const Fields& fields) {
  Conversation out;
  if (const Json* system = fields.get("system")) {
    // A billing header is a block of its own; it and other lines that change each time are no part of the prompt.
    std::string text;
    if (system->is_array()) {
      for (size_t i = 0; i < system->as_array().size(); ++i) {
        VEDETTE_ASSIGN_OR_RETURN(std::string piece, read_text_blocks(Json(Json::Array{system->as_array()[i]}),
                                                                     fmt::format("system[{}]", i)));
        drop_volatile_lines(piece);
        if (!piece.empty()) text += (text.empty() ? "" : "\n") + piece;
      }
    } else if (system->is_string()) {
      text = system->as_string();
    } else {
      return fields.wrong("system", "a string or a list of text blocks");
    }
    if (!text.empty()) out.messages.push_back(turn("system", text));
  }
  const Json* messages = fields.get("messages");
  if (messages == nullptr || !messages->is_array() || messages->as_array().empty())
    return fields.wrong("messages", "a list of at least one message");
  TurnReader reader(out.messages);
  for (size_t i = 0; i < messages->as_array().size(); ++i)
    VEDETTE_RETURN_IF_ERROR(reader.read(messages->as_array()[i], fmt::format("messages[{}]", i)));
  reader.finish();
  if (out.messages.as_array().empty())
    return invalid_request("messages",
                           "messages: expected at least one message with text, found none; add a user turn");
  const Json& last = out.messages.as_array().back();
  out.continue_last = last.find("role")->as_string() == "assistant" && last.find("tool_calls") == nullptr &&
                      !last.find("content")->as_string().empty();
  return out;
}

Status read_tools(const Fields& fields, GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* tools, fields.array("tools"));
  if (tools == nullptr) return ok_status();
  for (size_t i = 0; i < tools->as_array().size(); ++i) {
    const Json& entry = tools->as_array()[i];
    const std::string path = fmt::format("tools[{}]", i);
    if (!entry.is_object()) return wrong_value(path, "an object", &entry);
    const Fields inner(entry, path + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto type, inner.string("type"));
    VEDETTE_ASSIGN_OR_RETURN(auto name, inner.string("name"));
    VEDETTE_ASSIGN_OR_RETURN(const Json* schema, inner.object("input_schema"));
    if (schema == nullptr && type && *type != "custom") {
      leave_out_tool(*type, job);
      continue;
    }
    if (!name || name->empty()) return inner.wrong("name", "a name");
    text::ToolSpec tool;
    tool.name = *name;
    VEDETTE_ASSIGN_OR_RETURN(auto description, inner.string("description"));
    tool.description = description.value_or("");
    tool.parameters = schema == nullptr ? Json::object() : *schema;
    VEDETTE_RETURN_IF_ERROR(add_tool(std::move(tool), path + ".name", job));
  }
  return ok_status();
}

Status read_tool_choice(const Fields& fields, GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* choice, fields.object("tool_choice"));
  if (choice == nullptr) return ok_status();
  const Fields inner(*choice, "tool_choice.");
  VEDETTE_ASSIGN_OR_RETURN(auto type, inner.string("type"));
  using enum text::ToolChoiceKind;
  if (type && *type == "auto")
    job.tool_choice.kind = kAuto;
  else if (type && *type == "any")
    job.tool_choice.kind = kRequired;
  else if (type && *type == "none")
    job.tool_choice.kind = kNone;
  else if (type && *type == "tool")
    job.tool_choice.kind = kNamed;
  else
    return inner.wrong("type", "one of auto, any, tool, none");
  VEDETTE_ASSIGN_OR_RETURN(auto alone, inner.boolean("disable_parallel_tool_use"));
  job.tool_choice.parallel = !alone.value_or(false);
  VEDETTE_ASSIGN_OR_RETURN(auto name, inner.string("name"));
  if (job.tool_choice.kind == kNamed && !name) return inner.wrong("name", "the name of a tool");
  job.tool_choice.name = name.value_or("");
  return ok_status();
}

// thinking {type: enabled | adaptive | disabled, budget_tokens, display}, output_config {effort, format}.
Result<bool> read_thinking(const Fields& fields, Conversation& conversation, GenerateJob& job) {
  bool omit = false;
  VEDETTE_ASSIGN_OR_RETURN(const Json* thinking, fields.object("thinking"));
  if (thinking != nullptr) {
    const Fields inner(*thinking, "thinking.");
    VEDETTE_ASSIGN_OR_RETURN(auto type, inner.string("type"));
    if (!type || (*type != "enabled" && *type != "adaptive" && *type != "disabled"))
      return inner.wrong("type", "one of enabled, adaptive, disabled");
    conversation.thinking = *type == "disabled" ? Thinking::kOff : Thinking::kOn;
    VEDETTE_ASSIGN_OR_RETURN(auto budget, inner.integer("budget_tokens", 0, 1'000'000'000));
    if (budget && *type == "enabled") job.thinking_budget = *budget;
    VEDETTE_ASSIGN_OR_RETURN(auto display, inner.string("display"));
    omit = display && *display == "omitted";
  }
  job.keep_reasoning = conversation.thinking != Thinking::kOff;
  VEDETTE_ASSIGN_OR_RETURN(const Json* config, fields.object("output_config"));
  if (config == nullptr) return omit;
  const Fields inner(*config, "output_config.");
  VEDETTE_ASSIGN_OR_RETURN(auto effort, inner.string("effort"));
  if (effort) {
    if (*effort != "low" && *effort != "medium" && *effort != "high" && *effort != "xhigh" && *effort != "max")
      return inner.wrong("effort", "one of low, medium, high, xhigh, max");
    conversation.effort = *effort == "max" ? "xhigh" : *effort;
  }
  return omit;
}

// output_config.format or output_format: {type: "json_schema", schema}.
Status read_format(const Fields& fields, GenerateJob& job) {
  const Json* format = nullptr;
  std::string path = "output_format";
  VEDETTE_ASSIGN_OR_RETURN(format, fields.object(path));
  VEDETTE_ASSIGN_OR_RETURN(const Json* config, fields.object("output_config"));
  if (config != nullptr && format == nullptr) {
    path = "output_config.format";
    VEDETTE_ASSIGN_OR_RETURN(format, Fields(*config, "output_config.").object("format"));
  }
  if (format == nullptr) return ok_status();
  const Fields inner(*format, path + ".");
  VEDETTE_ASSIGN_OR_RETURN(auto type, inner.string("type"));
  if (!type || *type != "json_schema") return inner.wrong("type", "json_schema");
  VEDETTE_ASSIGN_OR_RETURN(const Json* schema, inner.object("schema"));
  if (schema == nullptr) return inner.wrong("schema", "a JSON schema");
  job.format = {text::Grammar{text::GrammarKind::kJsonSchema, schema->dump()}, path + ".schema"};
  return ok_status();
}

Result<Translation> translate(const Json& body, const DialectContext& context) {
  const Fields fields(body);
  Translation out;
  GenerateJob& job = out.job;
  job.sampling = context.defaults;
  VEDETTE_RETURN_IF_ERROR(read_sampling_fields(body, context, job));
  VEDETTE_RETURN_IF_ERROR(fields.string("model"));
  VEDETTE_ASSIGN_OR_RETURN(Conversation conversation, read_conversation(fields));
  VEDETTE_RETURN_IF_ERROR(read_tools(fields, job));
  VEDETTE_RETURN_IF_ERROR(read_tool_choice(fields, job));
  VEDETTE_RETURN_IF_ERROR(read_thinking_fields(fields, conversation));
  VEDETTE_ASSIGN_OR_RETURN(const bool omit, read_thinking(fields, conversation, job));
  VEDETTE_RETURN_IF_ERROR(read_format(fields, job));
  constexpr std::string_view kMaxNames[] = {"max_tokens"};
  VEDETTE_RETURN_IF_ERROR(read_max_tokens(fields, kMaxNames, 0, job));
  VEDETTE_ASSIGN_OR_RETURN(auto stream, fields.boolean("stream"));
  job.stream = stream.value_or(false);
  job.prompts.emplace_back(std::move(conversation));
  note_unknown_fields(body, kKnown, job);
  out.writer = std::make_unique<MessagesWriter>(omit);
  return out;
}

}  // namespace

const Dialect kMessagesDialect{"messages", translate, error_body};

}  // namespace vedette::server
