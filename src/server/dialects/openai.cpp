#include "server/dialects/openai.h"

#include "base/error.h"
#include "base/utf8.h"

namespace vedette::server {

Json openai_usage(const JobAnswer& answer) {
  Json cached = Json::object();
  cached.set("cached_tokens", answer.cached_tokens);
  Json reasoning = Json::object();
  reasoning.set("reasoning_tokens", answer.reasoning_tokens);
  Json out = Json::object();
  out.set("prompt_tokens", answer.prompt_tokens);
  out.set("completion_tokens", answer.completion_tokens);
  out.set("total_tokens", answer.prompt_tokens + answer.completion_tokens);
  out.set("prompt_tokens_details", std::move(cached));
  out.set("completion_tokens_details", std::move(reasoning));
  return out;
}

void end_openai_stream(Json head, bool usage, const JobAnswer& answer, std::string& out) {
  if (usage) {
    head.set("choices", Json::array());
    head.set("usage", openai_usage(answer));
    append_sse(out, "", head.dump());
  }
  append_sse(out, "", "[DONE]");
}

void fail_openai_stream(const Error& error, std::string& out) {
  append_sse(out, "", openai_error(error, status_of(error)).dump());
  append_sse(out, "", "[DONE]");
}

Result<StreamOptions> read_stream_options(const Fields& fields) {
  StreamOptions out;
  VEDETTE_ASSIGN_OR_RETURN(auto stream, fields.boolean("stream"));
  out.stream = stream.value_or(false);
  VEDETTE_ASSIGN_OR_RETURN(const Json* options, fields.object("stream_options"));
  if (options == nullptr) return out;
  const Fields inner(*options, "stream_options.");
  VEDETTE_ASSIGN_OR_RETURN(auto usage, inner.boolean("include_usage"));
  out.include_usage = usage.value_or(false);
  return out;
}

namespace {

Status set_grammar(GenerateJob& job, text::GrammarKind kind, std::string text, std::string field) {
  if (job.format.grammar)
    return invalid_request(field, "{}: and {} exclude each other; leave one of them out", field, job.format.field);
  job.format.grammar = text::Grammar{kind, std::move(text)};
  job.format.field = std::move(field);
  return ok_status();
}

Status read_format_object(const Json& format, GenerateJob& job) {
  const Fields fields(format, "response_format.");
  VEDETTE_ASSIGN_OR_RETURN(auto type, fields.string("type"));
  if (!type) return fields.wrong("type", "one of text, json_object, json_schema");
  if (*type == "text") return ok_status();
  if (*type == "json_object") {
    // llama-server takes a schema here too.
    VEDETTE_ASSIGN_OR_RETURN(const Json* schema, fields.object("schema"));
    if (schema != nullptr)
      return set_grammar(job, text::GrammarKind::kJsonSchema, schema->dump(), "response_format.schema");
    return set_grammar(job, text::GrammarKind::kJsonSchema, R"({"type":"object"})", "response_format");
  }
  if (*type != "json_schema") return fields.wrong("type", "one of text, json_object, json_schema");
  VEDETTE_ASSIGN_OR_RETURN(const Json* wrapper, fields.object("json_schema"));
  if (wrapper == nullptr) return fields.wrong("json_schema", "an object");
  const Fields inner(*wrapper, "response_format.json_schema.");
  const Json* schema = inner.get("schema");
  if (schema == nullptr || !(schema->is_object() || schema->is_bool())) return inner.wrong("schema", "a JSON schema");
  return set_grammar(job, text::GrammarKind::kJsonSchema, schema->dump(), "response_format.json_schema.schema");
}

}  // namespace

Status read_response_format(const Fields& fields, GenerateJob& job) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* format, fields.object("response_format"));
  if (format != nullptr) VEDETTE_RETURN_IF_ERROR(read_format_object(*format, job));
  if (const Json* schema = fields.get("json_schema")) {
    if (!schema->is_object() && !schema->is_bool()) return fields.wrong("json_schema", "a JSON schema");
    VEDETTE_RETURN_IF_ERROR(set_grammar(job, text::GrammarKind::kJsonSchema, schema->dump(), "json_schema"));
  }
  VEDETTE_ASSIGN_OR_RETURN(auto grammar, fields.string("grammar"));
  if (grammar && !grammar->empty())
    VEDETTE_RETURN_IF_ERROR(set_grammar(job, text::GrammarKind::kGbnf, *grammar, "grammar"));
  VEDETTE_ASSIGN_OR_RETURN(auto regex, fields.string("guided_regex"));
  if (regex) VEDETTE_RETURN_IF_ERROR(set_grammar(job, text::GrammarKind::kRegex, *regex, "guided_regex"));
  VEDETTE_ASSIGN_OR_RETURN(auto lark, fields.string("guided_lark"));
  if (lark) VEDETTE_RETURN_IF_ERROR(set_grammar(job, text::GrammarKind::kLark, *lark, "guided_lark"));
  return ok_status();
}

Status read_max_tokens(const Fields& fields, std::span<const std::string_view> names, int64_t least, GenerateJob& job) {
  for (const std::string_view name : names) {
    VEDETTE_ASSIGN_OR_RETURN(auto value, fields.integer(name, -1, 1'000'000'000));
    if (!value) continue;
    if (*value == 0 && least > 0) return fields.wrong(name, "at least 1, or -1 for no limit");
    job.max_tokens = *value;
  }
  return ok_status();
}

Status read_thinking_fields(const Fields& fields, Conversation& conversation) {
  VEDETTE_ASSIGN_OR_RETURN(auto effort, fields.string("reasoning_effort"));
  if (effort) {
    if (*effort == "none" || *effort == "off" || *effort == "disabled" || *effort == "false" || *effort == "0") {
      conversation.thinking = Thinking::kOff;
    } else if (*effort == "minimal") {
      conversation.effort = "low";
    } else if (*effort == "max") {
      conversation.effort = "xhigh";
    } else if (*effort == "low" || *effort == "medium" || *effort == "high" || *effort == "xhigh") {
      conversation.effort = *effort;
    } else {
      return fields.wrong("reasoning_effort", "one of none, minimal, low, medium, high, xhigh, max");
    }
  }
  VEDETTE_ASSIGN_OR_RETURN(auto enable, fields.boolean("enable_thinking"));
  if (enable) conversation.thinking = *enable ? Thinking::kOn : Thinking::kOff;
  VEDETTE_ASSIGN_OR_RETURN(const Json* kwargs, fields.object("chat_template_kwargs"));
  if (kwargs == nullptr) return ok_status();
  if (kwargs->as_object().size() > kMostPassedOn)
    return invalid_request("chat_template_kwargs", "chat_template_kwargs: expected at most {} entries, found {}",
                           kMostPassedOn, kwargs->as_object().size());
  conversation.template_kwargs = *kwargs;
  VEDETTE_ASSIGN_OR_RETURN(auto inner, Fields(*kwargs, "chat_template_kwargs.").boolean("enable_thinking"));
  if (inner) conversation.thinking = *inner ? Thinking::kOn : Thinking::kOff;
  return ok_status();
}

std::string token_text(const text::Tokenizer& tokenizer, int32_t id) {
  return repair_utf8(tokenizer.token_bytes(id, true));
}

Json token_bytes_json(const text::Tokenizer& tokenizer, int32_t id) {
  Json out = Json::array();
  for (const char byte : tokenizer.token_bytes(id, true))
    out.push_back(static_cast<int>(static_cast<unsigned char>(byte)));
  return out;
}

namespace {

Json token_logprob_json(const text::Tokenizer& tokenizer, const sampling::TokenLogprob& token) {
  Json out = Json::object();
  out.set("token", token_text(tokenizer, token.id));
  out.set("logprob", static_cast<double>(token.logprob));
  out.set("bytes", token_bytes_json(tokenizer, token.id));
  return out;
}

}  // namespace

Json token_logprobs_json(const text::Tokenizer& tokenizer, std::span<const engine::TokenLogprobs> tokens) {
  Json out = Json::array();
  for (const engine::TokenLogprobs& token : tokens) {
    Json entry = token_logprob_json(tokenizer, token.chosen);
    Json top = Json::array();
    for (const sampling::TokenLogprob& other : token.top) top.push_back(token_logprob_json(tokenizer, other));
    entry.set("top_logprobs", std::move(top));
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace vedette::server
