// OpenAI completions: https://platform.openai.com/docs/api-reference/completions
#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "server/dialects/openai.h"

namespace vedette::server {
namespace {

constexpr size_t kMostPrompts = 128;
constexpr std::string_view kKnown[] = {
    "model",  "prompt",          "suffix",      "max_tokens", "n_predict",    "max_completion_tokens",
    "stream", "stream_options",  "n",           "best_of",    "echo",         "logprobs",
    "user",   "response_format", "json_schema", "grammar",    "guided_regex", "guided_lark"};

// Characters whose first byte is there.
int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
}

// The old form of log probabilities: parallel lists over tokens; offsets count characters of the choice's text.
class LogprobLists {
 public:
  explicit LogprobLists(const text::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // The prompt's tokens, where its text is part of the choice's: nothing says how likely the first was.
  void begin_prompt(const std::vector<int32_t>& ids, std::string_view text) {
    // Tokens may say more at the front than the text has: a mark of the beginning, a space.
    offset_ = characters(text);
    for (const int32_t id : ids) offset_ -= characters(tokenizer_->token_bytes(id, true));
    add_token(ids.front(), Json());
    top_.push_back(Json());
  }
  void add(const engine::TokenLogprobs& token) {
    add_token(token.chosen.id, static_cast<double>(token.chosen.logprob));
    Json top = Json::object();
    const auto put = [&](const sampling::TokenLogprob& one) {
      const std::string text = token_text(*tokenizer_, one.id);
      if (top.find(text) == nullptr) top.set(text, static_cast<double>(one.logprob));
    };
    for (const sampling::TokenLogprob& other : token.top) put(other);
    put(token.chosen);
    top_.push_back(std::move(top));
  }
  bool empty() const { return tokens_.as_array().empty(); }
  Json take() {
    Json out = Json::object();
    out.set("tokens", std::exchange(tokens_, Json::array()));
    out.set("token_logprobs", std::exchange(values_, Json::array()));
    out.set("top_logprobs", std::exchange(top_, Json::array()));
    out.set("text_offset", std::exchange(offsets_, Json::array()));
    return out;
  }

 private:
  void add_token(int32_t id, Json value) {
    tokens_.push_back(token_text(*tokenizer_, id));
    values_.push_back(std::move(value));
    offsets_.push_back(std::max<int64_t>(0, offset_));
    offset_ += characters(tokenizer_->token_bytes(id, true));
  }

  const text::Tokenizer* tokenizer_;
  int64_t offset_ = 0;
  Json tokens_ = Json::array(), values_ = Json::array(), top_ = Json::array(), offsets_ = Json::array();
};

class CompletionWriter final : public AnswerWriter {
 public:
  CompletionWriter(const text::Tokenizer& tokenizer, StreamOptions options, bool logprobs, bool echo, int n,
                   size_t choices)
      : tokenizer_(tokenizer),
        options_(options),
        logprobs_(logprobs),
        echo_(echo),
        n_(n),
        lists_(choices, LogprobLists(tokenizer)),
        echoed_(choices, false) {}

  Json body(const JobStart& start, const JobAnswer& answer) override {
    Json choices = Json::array();
    for (size_t i = 0; i < answer.choices.size(); ++i) {
      const ChoiceAnswer& choice = answer.choices[i];
      LogprobLists lists(tokenizer_);
      if (logprobs_ && echo_) lists.begin_prompt(ids_of(start, i), prompt_of(start, i));
      for (const engine::TokenLogprobs& token : choice.prompt_logprobs) lists.add(token);
      for (const engine::TokenLogprobs& token : choice.logprobs) lists.add(token);
      choices.push_back(choice_json(static_cast<int>(i), (echo_ ? prompt_of(start, i) : "") + choice.content,
                                    logprobs_ ? lists.take() : Json(), reason_of(choice)));
    }
    Json out = head(start);
    out.set("choices", std::move(choices));
    out.set("usage", openai_usage(answer));
    out.set("x_vedette", answer.x_vedette);
    return out;
  }

  void begin(const JobStart& start, std::string& out) override {
    if (!echo_) return;
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (logprobs_)
        lists_[i].begin_prompt(ids_of(start, i), prompt_of(start, i));
      else
        echo(start, i, out);
    }
  }

  void event(const JobEvent& event, const JobStart& start, std::string& out) override {
    const auto index = static_cast<size_t>(event.choice);
    if (event.kind == JobEvent::Kind::kText) echo(start, index, out);
    for (const engine::TokenLogprobs& token : event.logprobs) lists_[index].add(token);
    std::string text;
    for (const text::MessagePart& part : event.parts) text += part.text;
    if (text.empty()) return;
    frame(start, choice_json(event.choice, text, take_lists(index), Json()), out);
  }

  void finish(const JobStart& start, const JobAnswer& answer, std::string& out) override {
    for (size_t i = 0; i < answer.choices.size(); ++i) {
      const bool last = i + 1 == answer.choices.size();
      echo(start, i, out);
      frame(start, choice_json(static_cast<int>(i), "", take_lists(i), reason_of(answer.choices[i])), out,
            last ? &answer.x_vedette : nullptr);
    }
    end_openai_stream(head(start), options_.include_usage, answer, out);
  }

  void fail(const Error& error, std::string& out) override { fail_openai_stream(error, out); }

  void keep_alive(std::string& out) override { out += ": keep-alive\n\n"; }

 private:
  static Json head(const JobStart& start) {
    Json out = Json::object();
    out.set("id", "cmpl-" + start.id);
    out.set("object", "text_completion");
    out.set("created", start.created);
    out.set("model", start.model);
    out.set("system_fingerprint", "vedette");
    return out;
  }
  static Json reason_of(const ChoiceAnswer& choice) {
    return choice.reason == engine::FinishReason::kLength ? "length" : "stop";
  }
  const std::string& prompt_of(const JobStart& start, size_t choice) const {
    return start.prompt_texts[choice / static_cast<size_t>(n_)];
  }
  const std::vector<int32_t>& ids_of(const JobStart& start, size_t choice) const {
    return start.prompts[choice / static_cast<size_t>(n_)];
  }
  // The prompt's text, once; where log probabilities are wanted, when those of all its tokens are there.
  void echo(const JobStart& start, size_t index, std::string& out) {
    if (!echo_ || echoed_[index]) return;
    echoed_[index] = true;
    const std::string& text = prompt_of(start, index);
    if (!text.empty()) frame(start, choice_json(static_cast<int>(index), text, take_lists(index), Json()), out);
  }
  Json take_lists(size_t index) { return logprobs_ && !lists_[index].empty() ? lists_[index].take() : Json(); }

  static Json choice_json(int index, std::string text, Json logprobs, Json reason) {
    Json out = Json::object();
    out.set("index", index);
    out.set("text", std::move(text));
    out.set("logprobs", std::move(logprobs));
    out.set("finish_reason", std::move(reason));
    return out;
  }

  void frame(const JobStart& start, Json choice, std::string& out, const Json* report = nullptr) const {
    Json choices = Json::array();
    choices.push_back(std::move(choice));
    Json whole = head(start);
    whole.set("choices", std::move(choices));
    if (options_.include_usage) whole.set("usage", Json());
    if (report != nullptr) whole.set("x_vedette", *report);
    append_sse(out, "", whole.dump());
  }

  const text::Tokenizer& tokenizer_;
  const StreamOptions options_;
  const bool logprobs_, echo_;
  const int n_;
  std::vector<LogprobLists> lists_;  // [choice]: not yet sent
  std::vector<bool> echoed_;         // [choice]
};

Result<std::vector<int32_t>> read_ids(const Json& list, const std::string& path, int64_t vocab_size) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < list.as_array().size(); ++i) {
    const Json& id = list.as_array()[i];
    if (!id.is_int() || id.as_int() < 0 || id.as_int() >= vocab_size)
      return wrong_value(fmt::format("{}[{}]", path, i), fmt::format("a token id from 0 to {}", vocab_size - 1), &id);
    out.push_back(static_cast<int32_t>(id.as_int()));
  }
  return out;
}

// A string, a list of strings, a list of ids, or a list of lists of ids.
Status read_prompt(const Fields& fields, const DialectContext& context, GenerateJob& job) {
  const Json* prompt = fields.get("prompt");
  constexpr std::string_view kExpected = "a string, a list of strings, or token ids";
  if (prompt == nullptr) return fields.wrong("prompt", kExpected);
  if (prompt->is_string()) {
    job.prompts.emplace_back(prompt->as_string());
    return ok_status();
  }
  if (!prompt->is_array() || prompt->as_array().empty()) return fields.wrong("prompt", kExpected);
  const Json::Array& list = prompt->as_array();
  if (list.front().is_int()) {
    VEDETTE_ASSIGN_OR_RETURN(auto ids, read_ids(*prompt, "prompt", context.vocab_size));
    job.prompts.emplace_back(std::move(ids));
    return ok_status();
  }
  if (list.size() > kMostPrompts) return fields.wrong("prompt", fmt::format("at most {} prompts", kMostPrompts));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("prompt[{}]", i);
    if (list[i].is_string()) {
      job.prompts.emplace_back(list[i].as_string());
    } else if (list[i].is_array() && !list[i].as_array().empty()) {
      VEDETTE_ASSIGN_OR_RETURN(auto ids, read_ids(list[i], path, context.vocab_size));
      job.prompts.emplace_back(std::move(ids));
    } else {
      return wrong_value(path, "a string or a list of token ids", &list[i]);
    }
  }
  return ok_status();
}

Result<Translation> translate(const Json& body, const DialectContext& context) {
  const Fields fields(body);
  Translation out;
  GenerateJob& job = out.job;
  job.split_message = false;
  job.sampling = context.defaults;
  VEDETTE_RETURN_IF_ERROR(read_sampling_fields(body, context, job));
  VEDETTE_RETURN_IF_ERROR(fields.string("model"));
  VEDETTE_RETURN_IF_ERROR(read_prompt(fields, context, job));
  VEDETTE_ASSIGN_OR_RETURN(auto suffix, fields.string("suffix"));
  if (suffix && !suffix->empty())
    return invalid_request("suffix", "suffix: text after the completion is not supported here; use POST /infill");
  constexpr std::string_view kMaxNames[] = {"n_predict", "max_tokens", "max_completion_tokens"};
  VEDETTE_RETURN_IF_ERROR(read_max_tokens(fields, kMaxNames, 0, job));
  VEDETTE_RETURN_IF_ERROR(read_response_format(fields, job));
  VEDETTE_ASSIGN_OR_RETURN(auto n, fields.integer("n", 1, 128));
  job.n = static_cast<int>(n.value_or(1));
  VEDETTE_ASSIGN_OR_RETURN(auto best_of, fields.integer("best_of", 1, 128));
  if (best_of && *best_of != job.n)
    return invalid_request("best_of",
                           "best_of: choosing among more completions than are returned is not supported; "
                           "expected n ({}), found {}",
                           job.n, *best_of);
  VEDETTE_ASSIGN_OR_RETURN(auto echo, fields.boolean("echo"));
  const Json* logprobs = fields.get("logprobs");
  if (logprobs != nullptr && logprobs->is_bool()) {
    if (logprobs->as_bool()) job.logprobs = 0;
  } else {
    VEDETTE_ASSIGN_OR_RETURN(auto top, fields.integer("logprobs", 0, 20));
    if (top) job.logprobs = static_cast<int>(*top);
  }
  job.prompt_logprobs = echo.value_or(false) && job.logprobs >= 0;
  VEDETTE_ASSIGN_OR_RETURN(const StreamOptions options, read_stream_options(fields));
  job.stream = options.stream;
  note_unknown_fields(body, kKnown, job);
  out.writer = std::make_unique<CompletionWriter>(context.tokenizer, options, job.logprobs >= 0, echo.value_or(false),
                                                  job.n, job.prompts.size() * static_cast<size_t>(job.n));
  return out;
}

}  // namespace

const Dialect kCompletionsDialect{"completions", translate, openai_error};

}  // namespace vedette::server
