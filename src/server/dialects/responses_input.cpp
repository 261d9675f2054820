#include "server/dialects/responses_input.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "server/chat_messages.h"
#include "server/dialects/openai.h"
#include "server/fields.h"
#include "server/response_store.h"
#include "server/text_parts.h"
#include "server/tool_fields.h"

namespace vedette::server {
namespace {

constexpr size_t kMostItems = 100'000;
constexpr size_t kMostWarnings = 32;
constexpr std::string_view kKnown[] = {"model",
                                       "input",
                                       "instructions",
                                       "previous_response_id",
                                       "conversation",
                                       "store",
                                       "stream",
                                       "stream_options",
                                       "max_output_tokens",
                                       "max_tool_calls",
                                       "tools",
                                       "tool_choice",
                                       "parallel_tool_calls",
                                       "text",
                                       "reasoning",
                                       "metadata",
                                       "truncation",
                                       "include",
                                       "user",
                                       "service_tier",
                                       "background",
                                       "prompt_cache_retention",
                                       "safety_identifier",
                                       "top_logprobs",
                                       "client_metadata",
                                       "enable_thinking",
                                       "reasoning_effort",
                                       "chat_template_kwargs"};

constexpr std::string_view kTextTypes[] = {"input_text",   "output_text",    "text",
                                           "summary_text", "reasoning_text", "refusal"};

Result<std::string> read_parts(const Json& content, const std::string& path) {
  return read_text(content, path, {kTextTypes});
}

// Items become template turns; reasoning and calls gather in one assistant turn.
class ItemReader {
 public:
  ItemReader(Json& messages, GenerateJob& job) : messages_(messages), job_(job) {}

  Status read(const Json& item, const std::string& path) {
    if (!item.is_object()) return wrong_value(path, "an object", &item);
    const Fields fields(item, path + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto type, fields.string("type"));
    if (!type || *type == "message") return read_message(fields);
    if (*type == "function_call") return read_call(fields);
    if (*type == "function_call_output" || *type == "custom_tool_call_output") return read_output(fields);
    if (*type == "reasoning") return read_reasoning(fields);
    if (*type == "item_reference")
      return invalid_request(path,
                             "{}: references to items are not resolved here; send the items or "
                             "previous_response_id",
                             path);
    if (job_.warnings.size() < kMostWarnings)
      job_.warnings.push_back("input items of type '" + type->substr(0, 60) + "' were left out");
    return ok_status();
  }

  // The assistant's turn that gathers, if any, is over.
  void finish() {
    if (!open_) return;
    open_ = false;
    Json turn = Json::object();
    turn.set("role", "assistant");
    turn.set("content", std::exchange(text_, {}));
    if (!reasoning_.empty()) turn.set("reasoning_content", std::exchange(reasoning_, {}));
    if (!calls_.as_array().empty()) turn.set("tool_calls", std::exchange(calls_, Json::array()));
    messages_.push_back(std::move(turn));
  }

 private:
  Status read_message(const Fields& fields) {
    VEDETTE_ASSIGN_OR_RETURN(auto role, fields.string("role"));
    if (role && *role == "developer") *role = "system";
    if (!role || (*role != "user" && *role != "assistant" && *role != "system"))
      return fields.wrong("role", "one of user, assistant, system, developer");
    const Json* content = fields.get("content");
    if (content == nullptr) return fields.wrong("content", "a string or a list of parts");
    VEDETTE_ASSIGN_OR_RETURN(const std::string text, read_parts(*content, fields.path("content")));
    if (*role == "assistant") {
      open_ = true;
      text_ += (text_.empty() ? "" : "\n") + text;
      return ok_status();
    }
    finish();
    Json turn = Json::object();
    turn.set("role", *role);
    turn.set("content", text);
    messages_.push_back(std::move(turn));
    return ok_status();
  }

  Status read_call(const Fields& fields) {
    VEDETTE_ASSIGN_OR_RETURN(auto name, fields.string("name"));
    if (!name || name->empty()) return fields.wrong("name", "a name");
    VEDETTE_ASSIGN_OR_RETURN(auto id, fields.string("call_id"));
    VEDETTE_ASSIGN_OR_RETURN(auto arguments, fields.string("arguments"));
    open_ = true;
    calls_.push_back(call_json(id.value_or(""), *name, arguments.value_or("{}")));
    return ok_status();
  }

  Status read_output(const Fields& fields) {
    VEDETTE_ASSIGN_OR_RETURN(auto id, fields.string("call_id"));
    if (!id) return fields.wrong("call_id", "the id of a call");
    const Json* output = fields.get("output");
    if (output == nullptr) return fields.wrong("output", "a string or a list of parts");
    std::string text;
    if (output->is_object()) {
      text = output->dump();
    } else {
      VEDETTE_ASSIGN_OR_RETURN(text, read_parts(*output, fields.path("output")));
    }
    finish();
    Json turn = Json::object();
    turn.set("role", "tool");
    turn.set("tool_call_id", *id);
    turn.set("content", text);
    messages_.push_back(std::move(turn));
    return ok_status();
  }

  Status read_reasoning(const Fields& fields) {
    std::string text;
    for (const std::string_view key : {"content", "summary"}) {
      const Json* parts = fields.get(key);
      if (parts == nullptr || !text.empty()) continue;
      VEDETTE_ASSIGN_OR_RETURN(text, read_parts(*parts, fields.path(key)));
    }
    finish();  // reasoning begins a new assistant turn
    open_ = !text.empty();
    reasoning_ = std::move(text);
    return ok_status();
  }

  Json& messages_;
  GenerateJob& job_;
  bool open_ = false;  // an assistant's turn, made of these three
  std::string text_, reasoning_;
  Json calls_ = Json::array();
};

Status read_tool_list(const Json& tools, const std::string& path, const std::string& space, GenerateJob& job,
                      ResponsesRequest& request) {
  for (size_t i = 0; i < tools.as_array().size(); ++i) {
    const Json& entry = tools.as_array()[i];
    const std::string at = fmt::format("{}[{}]", path, i);
    if (!entry.is_object()) return wrong_value(at, "an object", &entry);
    const Fields fields(entry, at + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto type, fields.string("type"));
    if (!type) return fields.wrong("type", "a string");
    if (*type == "namespace" && space.empty()) {
      VEDETTE_ASSIGN_OR_RETURN(auto name, fields.string("name"));
      VEDETTE_ASSIGN_OR_RETURN(const Json* inner, fields.array("tools"));
      if (inner != nullptr)
        VEDETTE_RETURN_IF_ERROR(read_tool_list(*inner, at + ".tools", name.value_or("namespace"), job, request));
      continue;
    }
    if (*type != "function") {
      leave_out_tool(*type, job);
      continue;
    }
    VEDETTE_ASSIGN_OR_RETURN(text::ToolSpec tool, read_function(fields));
    if (!space.empty()) request.namespaces[tool.name] = space;
    VEDETTE_RETURN_IF_ERROR(add_tool(std::move(tool), at + ".name", job));
  }
  return ok_status();
}

// {"type": "function", "name"}.
Result<std::string> name_of_choice(const Fields& choice) {
  VEDETTE_ASSIGN_OR_RETURN(auto type, choice.string("type"));
  if (!type || *type != "function") return choice.wrong("type", "function: other tools are not run here");
  VEDETTE_ASSIGN_OR_RETURN(auto name, choice.string("name"));
  if (!name) return choice.wrong("name", "the name of a tool");
  return std::move(*name);
}

// text.format: {type: text | json_object | json_schema, name, schema}.
Status read_format(const Fields& fields, GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* text, fields.object("text"));
  if (text == nullptr) return ok_status();
  VEDETTE_ASSIGN_OR_RETURN(const Json* format, Fields(*text, "text.").object("format"));
  if (format == nullptr) return ok_status();
  const Fields inner(*format, "text.format.");
  VEDETTE_ASSIGN_OR_RETURN(auto type, inner.string("type"));
  if (type && *type == "text") return ok_status();
  if (type && *type == "json_object") {
    job.format = {text::Grammar{text::GrammarKind::kJsonSchema, R"({"type":"object"})"}, "text.format"};
    return ok_status();
  }
  if (!type || *type != "json_schema") return inner.wrong("type", "one of text, json_object, json_schema");
  VEDETTE_ASSIGN_OR_RETURN(const Json* schema, inner.object("schema"));
  if (schema == nullptr) return inner.wrong("schema", "a JSON schema");
  job.format = {text::Grammar{text::GrammarKind::kJsonSchema, schema->dump()}, "text.format.schema"};
  return ok_status();
}

Status read_reasoning_options(const Fields& fields, Conversation& conversation) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* reasoning, fields.object("reasoning"));
  if (reasoning == nullptr) return ok_status();
  const Fields inner(*reasoning, "reasoning.");
  VEDETTE_ASSIGN_OR_RETURN(auto effort, inner.string("effort"));
  if (!effort) return ok_status();
  if (*effort == "none")
    conversation.thinking = Thinking::kOff;
  else if (*effort == "minimal")
    conversation.effort = "low";
  else if (*effort == "low" || *effort == "medium" || *effort == "high" || *effort == "xhigh")
    conversation.effort = *effort;
  else
    return inner.wrong("effort", "one of none, minimal, low, medium, high, xhigh");
  return ok_status();
}

Status refuse_unavailable(const Fields& fields) {
  VEDETTE_ASSIGN_OR_RETURN(auto background, fields.boolean("background"));
  if (background.value_or(false))
    return invalid_request("background", "background: answers are not made in the background here; leave it out");
  VEDETTE_ASSIGN_OR_RETURN(auto truncation, fields.string("truncation"));
  if (truncation && *truncation != "disabled") return fields.wrong("truncation", "disabled: prompts are never cut");
  VEDETTE_ASSIGN_OR_RETURN(const Json* metadata, fields.object("metadata"));
  if (metadata != nullptr && metadata->as_object().size() > 16) return fields.wrong("metadata", "at most 16 entries");
  return ok_status();
}

// Log probabilities of the text's tokens, where `include` or top_logprobs asks for them.
Status read_logprobs(const Fields& fields, GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(auto top, fields.integer("top_logprobs", 0, 20));
  VEDETTE_ASSIGN_OR_RETURN(const Json* include, fields.array("include"));
  const auto asks = [](const Json& what) {
    return what.is_string() && what.as_string() == "message.output_text.logprobs";
  };
  const bool included = include != nullptr && std::any_of(include->as_array().begin(), include->as_array().end(), asks);
  if (included || top.value_or(0) > 0) job.logprobs = static_cast<int>(top.value_or(0));
  return ok_status();
}

// Items of earlier turns, from the store.
Result<Json> read_history(const Fields& fields, const DialectContext& context, ResponsesRequest& request) {
  VEDETTE_ASSIGN_OR_RETURN(auto previous, fields.string("previous_response_id"));
  const Json* conversation = fields.get("conversation");
  if (previous && conversation != nullptr)
    return invalid_request("conversation", "conversation: and previous_response_id exclude each other; send one");
  if (previous) {
    auto stored = context.responses->get(context.scope, *previous);
    if (!stored)
      return not_found("previous_response_id", "previous_response_id: no response '{}' is stored",
                       previous->substr(0, 200));
    return std::move(stored->history);
  }
  if (conversation == nullptr) return Json::array();
  if (conversation->is_string()) {
    request.conversation = conversation->as_string();
  } else if (conversation->is_object()) {
    VEDETTE_ASSIGN_OR_RETURN(request.conversation, Fields(*conversation, "conversation.").string("id"));
  }
  if (!request.conversation || request.conversation->empty())
    return fields.wrong("conversation", "an id, or an object with an id");
  return context.responses->conversation(context.scope, *request.conversation).value_or(Json::array());
}

Result<Json> read_items(const Fields& fields) {
  const Json* input = fields.get("input");
  if (input == nullptr) return fields.wrong("input", "a string or a list of items");
  if (input->is_array() && input->as_array().size() <= kMostItems) return *input;
  if (!input->is_string()) return fields.wrong("input", "a string or a list of items");
  Json item = Json::object();
  item.set("type", "message");
  item.set("role", "user");
  item.set("content", input->as_string());
  return Json(Json::Array{std::move(item)});
}

// The response object's fields that come from the request, with the values that stand for what was not sent.
Json echo_of(const Json& body, const GenerateJob& job) {
  const auto given = [&](std::string_view key, Json otherwise) {
    const Json* value = body.find(key);
    return value == nullptr || value->is_null() ? std::move(otherwise) : *value;
  };
  Json format = Json::object();
  format.set("type", "text");
  Json text = Json::object();
  text.set("format", std::move(format));
  Json reasoning = Json::object();
  reasoning.set("effort", Json());
  reasoning.set("summary", Json());
  Json out = Json::object();
  out.set("background", false);
  out.set("instructions", given("instructions", Json()));
  out.set("max_output_tokens", given("max_output_tokens", Json()));
  out.set("max_tool_calls", given("max_tool_calls", Json()));
  out.set("metadata", given("metadata", Json::object()));
  out.set("parallel_tool_calls", given("parallel_tool_calls", true));
  out.set("previous_response_id", given("previous_response_id", Json()));
  out.set("prompt_cache_key", given("prompt_cache_key", Json()));
  out.set("reasoning", given("reasoning", std::move(reasoning)));
  out.set("service_tier", given("service_tier", "default"));
  out.set("store", given("store", true));
  out.set("temperature", job.sampling.temperature);
  out.set("text", given("text", std::move(text)));
  out.set("tool_choice", given("tool_choice", "auto"));
  out.set("tools", given("tools", Json::array()));
  out.set("top_logprobs", given("top_logprobs", 0));
  out.set("top_p", job.sampling.top_p);
  out.set("truncation", "disabled");
  out.set("user", given("user", Json()));
  return out;
}

}  // namespace

Result<ResponsesRequest> read_responses_request(const Json& body, const DialectContext& context, GenerateJob& job) {
  const Fields fields(body);
  ResponsesRequest request;
  job.sampling = context.defaults;
  VEDETTE_RETURN_IF_ERROR(read_sampling_fields(body, context, job));
  VEDETTE_RETURN_IF_ERROR(fields.string("model"));
  VEDETTE_RETURN_IF_ERROR(refuse_unavailable(fields));
  Conversation conversation;
  VEDETTE_ASSIGN_OR_RETURN(auto instructions, fields.string("instructions"));
  if (instructions && !instructions->empty()) {
    Json system = Json::object();
    system.set("role", "system");
    system.set("content", *instructions);
    conversation.messages.push_back(std::move(system));
  }
  VEDETTE_ASSIGN_OR_RETURN(request.history_items, read_history(fields, context, request));
  VEDETTE_ASSIGN_OR_RETURN(request.input_items, read_items(fields));
  ItemReader reader(conversation.messages, job);
  for (const Json& item : request.history_items.as_array()) VEDETTE_RETURN_IF_ERROR(reader.read(item, "history"));
  for (size_t i = 0; i < request.input_items.as_array().size(); ++i)
    VEDETTE_RETURN_IF_ERROR(reader.read(request.input_items.as_array()[i], fmt::format("input[{}]", i)));
  reader.finish();
  if (conversation.messages.as_array().empty())
    return invalid_request("input", "input: expected at least one item with text, found none; add a user's message");
  VEDETTE_RETURN_IF_ERROR(read_reasoning_options(fields, conversation));
  VEDETTE_RETURN_IF_ERROR(read_thinking_fields(fields, conversation));
  job.prompts.emplace_back(std::move(conversation));
  VEDETTE_ASSIGN_OR_RETURN(const Json* tools, fields.array("tools"));
  if (tools != nullptr) VEDETTE_RETURN_IF_ERROR(read_tool_list(*tools, "tools", "", job, request));
  VEDETTE_RETURN_IF_ERROR(read_tool_choice(fields, name_of_choice, job));
  VEDETTE_RETURN_IF_ERROR(read_format(fields, job));
  VEDETTE_ASSIGN_OR_RETURN(auto most, fields.integer("max_output_tokens", 1, 1'000'000'000));
  job.max_tokens = most;
  VEDETTE_RETURN_IF_ERROR(read_logprobs(fields, job));
  VEDETTE_RETURN_IF_ERROR(fields.integer("max_tool_calls", 1, 1'000'000));
  VEDETTE_ASSIGN_OR_RETURN(auto store, fields.boolean("store"));
  request.store = store.value_or(true);
  VEDETTE_ASSIGN_OR_RETURN(const StreamOptions stream, read_stream_options(fields));
  job.stream = stream.stream;
  note_unknown_fields(body, kKnown, job);
  request.echo = echo_of(body, job);
  return request;
}

}  // namespace vedette::server
