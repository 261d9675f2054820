// OpenAI chat completions: https://platform.openai.com/docs/api-reference/chat
#include <utility>
#include <vector>

#include "base/error.h"
#include "server/chat_messages.h"
#include "server/dialects/openai.h"
#include "server/tool_fields.h"

namespace vedette::server {
namespace {

using PartKind = text::MessagePart::Kind;

constexpr std::string_view kKnown[] = {"model",
                                       "messages",
                                       "stream",
                                       "stream_options",
                                       "n",
                                       "tools",
                                       "tool_choice",
                                       "parallel_tool_calls",
                                       "response_format",
                                       "json_schema",
                                       "grammar",
                                       "guided_regex",
                                       "guided_lark",
                                       "max_tokens",
                                       "max_completion_tokens",
                                       "n_predict",
                                       "logprobs",
                                       "top_logprobs",
                                       "reasoning_effort",
                                       "enable_thinking",
                                       "chat_template_kwargs",
                                       "add_generation_prompt",
                                       "continue_final_message",
                                       "user",
                                       "store",
                                       "metadata",
                                       "service_tier",
                                       "extra_body",
                                       "reasoning_alias",
                                       "function_call",
                                       "functions",
                                       "thinking",
                                       "reasoning_control"};

const char* finish_reason(const ChoiceAnswer& choice) {
  if (choice.reason == engine::FinishReason::kLength) return "length";
  return choice.calls.empty() ? "stop" : "tool_calls";
}

Json logprobs_json(const text::Tokenizer& tokenizer, const std::vector<engine::TokenLogprobs>& tokens) {
  Json content = token_logprobs_json(tokenizer, tokens);
  Json out = Json::object();
  out.set("content", std::move(content));
  out.set("refusal", Json());
  return out;
}

class ChatWriter final : public AnswerWriter {
 public:
  ChatWriter(const text::Tokenizer& tokenizer, StreamOptions options, bool logprobs, int choices)
      : tokenizer_(tokenizer), options_(options), logprobs_(logprobs), pending_(static_cast<size_t>(choices)) {}

  Json body(const JobStart& start, const JobAnswer& answer) override {
    Json choices = Json::array();
    for (size_t i = 0; i < answer.choices.size(); ++i) choices.push_back(choice_json(answer.choices[i], i));
    Json out = head(start, "chat.completion");
    out.set("choices", std::move(choices));
    out.set("usage", openai_usage(answer));
    out.set("x_vedette", answer.x_vedette);
    return out;
  }

  void begin(const JobStart& start, std::string& out) override {
    for (size_t i = 0; i < pending_.size(); ++i) {
      Json delta = Json::object();
      delta.set("role", "assistant");
      delta.set("content", "");
      chunk(start, static_cast<int>(i), std::move(delta), nullptr, out);
    }
  }

  void event(const JobEvent& event, const JobStart& start, std::string& out) override {
    if (event.kind != JobEvent::Kind::kText) return;
    auto& pending = pending_[static_cast<size_t>(event.choice)];
    pending.insert(pending.end(), event.logprobs.begin(), event.logprobs.end());
    for (const text::MessagePart& part : event.parts) {
      if (part.kind == PartKind::kCallEnd) continue;
      chunk(start, event.choice, delta_of(part, start, event.choice), nullptr, out);
    }
  }

  void finish(const JobStart& start, const JobAnswer& answer, std::string& out) override {
    for (size_t i = 0; i < answer.choices.size(); ++i) {
      const bool last = i + 1 == answer.choices.size();
      chunk(start, static_cast<int>(i), Json::object(), finish_reason(answer.choices[i]), out,
            last ? &answer.x_vedette : nullptr);
    }
    end_openai_stream(head(start, "chat.completion.chunk"), options_.include_usage, answer, out);
  }

  void fail(const Error& error, std::string& out) override { fail_openai_stream(error, out); }

  void keep_alive(std::string& out) override { out += ": keep-alive\n\n"; }

 private:
  static Json head(const JobStart& start, const char* object) {
    Json out = Json::object();
    out.set("id", chat_id(start));
    out.set("object", object);
    out.set("created", start.created);
    out.set("model", start.model);
    out.set("system_fingerprint", "vedette");
    return out;
  }

  static Json call_delta(const text::MessagePart& part, const JobStart& start, int choice) {
    Json function = Json::object();
    Json call = Json::object();
    call.set("index", part.call);
    if (part.kind == PartKind::kCallBegin) {
      call.set("id", "call_" + start.call_ids[static_cast<size_t>(choice)][static_cast<size_t>(part.call)]);
      call.set("type", "function");
      function.set("name", part.text);
      function.set("arguments", "");
    } else {
      function.set("arguments", part.text);
    }
    call.set("function", std::move(function));
    Json calls = Json::array();
    calls.push_back(std::move(call));
    return calls;
  }

  static Json delta_of(const text::MessagePart& part, const JobStart& start, int choice) {
    Json delta = Json::object();
    if (part.kind == PartKind::kReasoning) {
      delta.set("reasoning_content", part.text);
      delta.set("reasoning", part.text);
    } else if (part.kind == PartKind::kContent) {
      delta.set("content", part.text);
    } else {
      delta.set("tool_calls", call_delta(part, start, choice));
    }
    return delta;
  }

  void chunk(const JobStart& start, int index, Json delta, const char* reason, std::string& out,
             const Json* report = nullptr) {
    auto& pending = pending_[static_cast<size_t>(index)];
    Json choice = Json::object();
    choice.set("index", index);
    choice.set("delta", std::move(delta));
    choice.set("logprobs", logprobs_ && !pending.empty() ? logprobs_json(tokenizer_, pending) : Json());
    choice.set("finish_reason", reason != nullptr ? Json(reason) : Json());
    pending.clear();
    Json choices = Json::array();
    choices.push_back(std::move(choice));
    Json frame = head(start, "chat.completion.chunk");
    frame.set("choices", std::move(choices));
    if (options_.include_usage) frame.set("usage", Json());
    if (report != nullptr) frame.set("x_vedette", *report);
    append_sse(out, "", frame.dump());
  }

  Json choice_json(const ChoiceAnswer& choice, size_t index) const {
    Json message = Json::object();
    message.set("role", "assistant");
    message.set("content", choice.content.empty() && !choice.calls.empty() ? Json() : Json(choice.content));
    message.set("refusal", Json());
    if (!choice.reasoning.empty()) {
      message.set("reasoning_content", choice.reasoning);
      message.set("reasoning", choice.reasoning);
    }
    if (!choice.calls.empty()) {
      Json calls = Json::array();
      for (const CallAnswer& call : choice.calls) {
        Json function = Json::object();
        function.set("name", call.name);
        function.set("arguments", call.arguments);
        Json entry = Json::object();
        entry.set("id", "call_" + call.id);
        entry.set("type", "function");
        entry.set("function", std::move(function));
        calls.push_back(std::move(entry));
      }
      message.set("tool_calls", std::move(calls));
    }
    Json out = Json::object();
    out.set("index", static_cast<int64_t>(index));
    out.set("message", std::move(message));
    out.set("logprobs", logprobs_ ? logprobs_json(tokenizer_, choice.logprobs) : Json());
    out.set("finish_reason", finish_reason(choice));
    return out;
  }

  const text::Tokenizer& tokenizer_;
  const StreamOptions options_;
  const bool logprobs_;
  std::vector<std::vector<engine::TokenLogprobs>> pending_;  // [choice]: not yet sent
};

// {"type": "function", "function": {"name"}}.
Result<std::string> name_of_choice(const Fields& choice) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* function, choice.object("function"));
  if (function == nullptr) return choice.wrong("function", "an object with the name of a tool");
  const Fields inner(*function, choice.path("function."));
  VEDETTE_ASSIGN_OR_RETURN(auto name, inner.string("name"));
  if (!name) return inner.wrong("name", "the name of a tool");
  return std::move(*name);
}

Status read_tools(const Fields& fields, GenerateJob& job) {
  if (const Json* tools = fields.get("tools")) VEDETTE_RETURN_IF_ERROR(read_openai_tools(*tools, job));
  for (const std::string_view old : {"functions", "function_call"})
    if (fields.has(old))
      return invalid_request(std::string(old), "{}: the old form of tools is not read; use tools and tool_choice", old);
  return read_tool_choice(fields, name_of_choice, job);
}

// logprobs: a boolean; top_logprobs: 0 to 20.
Status read_logprobs(const Fields& fields, GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(auto wanted, fields.boolean("logprobs"));
  VEDETTE_ASSIGN_OR_RETURN(auto top, fields.integer("top_logprobs", 0, 20));
  if (top && !wanted.value_or(false))
    return invalid_request("top_logprobs", "top_logprobs: needs logprobs to be true; set it");
  if (wanted.value_or(false)) job.logprobs = static_cast<int>(top.value_or(0));
  return ok_status();
}

// The SDK's extra_body arrives flattened; a nested one counts too, below top-level fields.
Json flattened(const Json& body) {
  const Json* extra = body.find("extra_body");
  if (extra == nullptr || !extra->is_object()) return body;
  Json out = body;
  for (const auto& [key, value] : extra->as_object())
    if (out.find(key) == nullptr) out.set(key, value);
  return out;
}

Result<Translation> translate(const Json& given, const DialectContext& context) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* extra, Fields(given).object("extra_body"));
  if (extra != nullptr && extra->as_object().size() > kMostPassedOn)
    return invalid_request("extra_body", "extra_body: expected at most {} entries, found {}", kMostPassedOn,
                           extra->as_object().size());
  const Json body = flattened(given);
  const Fields fields(body);
  Translation out;
  GenerateJob& job = out.job;
  job.sampling = context.defaults;
  VEDETTE_RETURN_IF_ERROR(read_sampling_fields(body, context, job));
  VEDETTE_RETURN_IF_ERROR(fields.string("model"));
  VEDETTE_ASSIGN_OR_RETURN(auto continues, fields.boolean("continue_final_message"));
  if (!fields.has("messages")) return fields.wrong("messages", "a list");
  VEDETTE_ASSIGN_OR_RETURN(Conversation conversation,
                           read_chat_messages(*fields.get("messages"), continues.value_or(true)));
  VEDETTE_RETURN_IF_ERROR(read_thinking_fields(fields, conversation));
  job.prompts.emplace_back(std::move(conversation));
  VEDETTE_RETURN_IF_ERROR(read_tools(fields, job));
  VEDETTE_RETURN_IF_ERROR(read_response_format(fields, job));
  VEDETTE_RETURN_IF_ERROR(read_logprobs(fields, job));
  constexpr std::string_view kMaxNames[] = {"n_predict", "max_tokens", "max_completion_tokens"};
  VEDETTE_RETURN_IF_ERROR(read_max_tokens(fields, kMaxNames, 1, job));
  VEDETTE_ASSIGN_OR_RETURN(auto n, fields.integer("n", 1, 128));
  job.n = static_cast<int>(n.value_or(1));
  VEDETTE_ASSIGN_OR_RETURN(const StreamOptions options, read_stream_options(fields));
  job.stream = options.stream;
  VEDETTE_ASSIGN_OR_RETURN(auto control, fields.boolean("reasoning_control"));
  if (control.value_or(false)) job.end_reasoning = std::make_shared<std::atomic<bool>>(false);
  note_unknown_fields(body, kKnown, job);
  out.writer = std::make_unique<ChatWriter>(context.tokenizer, options, job.logprobs >= 0, job.n);
  return out;
}

}  // namespace

std::string chat_id(const JobStart& start) {
  return "chatcmpl-" + start.id;
}

const Dialect kChatDialect{"chat", translate, openai_error};

}  // namespace vedette::server
