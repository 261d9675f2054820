// llama-server's own completion form (tools/server/README.md there) and infill.
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "sampling/parameters.h"
#include "server/dialects/openai.h"

namespace vedette::server {
namespace {

constexpr std::string_view kKnown[] = {"prompt",
                                       "n_predict",
                                       "max_tokens",
                                       "stream",
                                       "grammar",
                                       "json_schema",
                                       "n_probs",
                                       "id_slot",
                                       "n_keep",
                                       "return_tokens",
                                       "timings_per_token",
                                       "post_sampling_probs",
                                       "response_fields",
                                       "sse_ping_interval",
                                       "min_keep",
                                       "n_discard",
                                       "lora",
                                       "model",
                                       "stream_options",
                                       "grammar_lazy",
                                       "grammar_triggers",
                                       "n_cmpl",
                                       "n_indent",
                                       "t_max_predict_ms",
                                       "return_progress",
                                       "verbose",
                                       "penalize_nl",
                                       "image_data",
                                       "system_prompt",
                                       "input_prefix",
                                       "input_suffix",
                                       "input_extra",
                                       "n"};

// What llama-server knows and this server does not do, with the value that asks for nothing.
struct InertField {
  std::string_view name;
  double neutral;
};
constexpr InertField kRefusedAbove[] = {
    {"n_indent", 0}, {"t_max_predict_ms", 0}, {"n_cmpl", 1}, {"n_keep", 0}, {"n_discard", 0}};
constexpr std::string_view kRefusedFlags[] = {"return_progress", "verbose", "post_sampling_probs", "grammar_lazy"};

Json ids_json(const std::vector<int32_t>& ids) {
  Json out = Json::array();
  for (const int32_t id : ids) out.push_back(id);
  return out;
}

Json per_second(int64_t count, double milliseconds) {
  return count > 0 && milliseconds > 0 ? Json(1000.0 * static_cast<double>(count) / milliseconds) : Json(0.0);
}

// cache_n, prompt_n (evaluated without cached), and the rates; decode counts n - 1 tokens, the first comes with the
// prompt.
Json timings_json(const engine::Timings& timings) {
  const int64_t computed = timings.prompt_tokens - timings.cached_tokens;
  const int64_t decoded = std::max<int64_t>(0, timings.generated_tokens - 1);
  Json out = Json::object();
  out.set("cache_n", timings.cached_tokens);
  out.set("prompt_n", computed);
  out.set("prompt_ms", timings.prefill_ms);
  out.set("prompt_per_token_ms", computed > 0 ? timings.prefill_ms / static_cast<double>(computed) : 0.0);
  out.set("prompt_per_second", per_second(computed, timings.prefill_ms));
  out.set("predicted_n", timings.generated_tokens);
  out.set("predicted_ms", timings.decode_ms);
  out.set("predicted_per_token_ms", decoded > 0 ? timings.decode_ms / static_cast<double>(decoded) : 0.0);
  out.set("predicted_per_second", per_second(decoded, timings.decode_ms));
  return out;
}

Json settings_json(const GenerateJob& job) {
  const sampling::SamplingParams& params = job.sampling;
  Json stop = Json::array();
  for (const std::string& text : job.stop) stop.push_back(text);
  Json out = Json::object();
  out.set("n_predict", job.max_tokens.value_or(-1));
  out.set("seed", params.seed ? Json(static_cast<int64_t>(*params.seed & 0x7fffffffffffffff)) : Json(-1));
  for (const sampling::Parameter& parameter : sampling::parameters())
    std::visit([&](auto member) { out.set(parameter.names[0], params.*member); }, parameter.member);
  out.set("stop", std::move(stop));
  out.set("ignore_eos", job.ignore_eos);
  out.set("n_probs", std::max(0, job.logprobs));
  out.set("stream", job.stream);
  return out;
}

// {"a/b": ...} of response_fields: the value at a path of members, under the path as key; unknown paths are left out.
Json project(const Json& whole, const std::vector<std::string>& paths) {
  Json out = Json::object();
  for (const std::string& path : paths) {
    const Json* at = &whole;
    std::string_view rest = path;
    while (at != nullptr && !rest.empty()) {
      const size_t slash = rest.find('/');
      at = at->find(rest.substr(0, slash));
      rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    }
    if (at != nullptr) out.set(path, *at);
  }
  return out;
}

struct NativeOptions {
  bool return_tokens = false;
  bool timings_per_token = false;
  std::vector<std::string> response_fields;
};

class NativeWriter final : public AnswerWriter {
 public:
  NativeWriter(const text::Tokenizer& tokenizer, NativeOptions options, Json settings, bool probabilities)
      : tokenizer_(tokenizer),
        options_(std::move(options)),
        settings_(std::move(settings)),
        probabilities_(probabilities) {}

  Json body(const JobStart& start, const JobAnswer& answer) override {
    if (answer.choices.size() == 1) return final_json(start, answer, 0, answer.choices[0].content);
    Json out = Json::array();
    for (size_t i = 0; i < answer.choices.size(); ++i)
      out.push_back(final_json(start, answer, i, answer.choices[i].content));
    return out;
  }

  void begin(const JobStart&, std::string&) override {}

  void event(const JobEvent& event, const JobStart&, std::string& out) override {
    if (event.kind != JobEvent::Kind::kText) return;
    std::string text;
    for (const text::MessagePart& part : event.parts) text += part.text;
    if (text.empty() && event.ids.empty()) return;
    Json frame = Json::object();
    frame.set("index", event.choice);
    frame.set("content", text);
    frame.set("tokens", ids_json(event.ids));
    frame.set("stop", false);
    frame.set("id_slot", event.choice);
    if (probabilities_) frame.set("completion_probabilities", probabilities_json(event.logprobs));
    append_sse(out, "", frame.dump());
  }

  void finish(const JobStart& start, const JobAnswer& answer, std::string& out) override {
    for (size_t i = 0; i < answer.choices.size(); ++i) append_sse(out, "", final_json(start, answer, i, "").dump());
  }

  void fail(const Error& error, std::string& out) override {
    append_sse(out, "error", openai_error(error, status_of(error)).dump());
  }

  void keep_alive(std::string& out) override { out += ": keep-alive\n\n"; }

 private:
  Json probability(const sampling::TokenLogprob& token) const {
    Json out = Json::object();
    out.set("id", token.id);
    out.set("token", token_text(tokenizer_, token.id));
    out.set("bytes", token_bytes_json(tokenizer_, token.id));
    out.set("logprob", static_cast<double>(token.logprob));
    return out;
  }

  Json probabilities_json(const std::vector<engine::TokenLogprobs>& tokens) const {
    Json out = Json::array();
    for (const engine::TokenLogprobs& token : tokens) {
      Json entry = probability(token.chosen);
      Json top = Json::array();
      for (const sampling::TokenLogprob& other : token.top) top.push_back(probability(other));
      entry.set("top_logprobs", std::move(top));
      out.push_back(std::move(entry));
    }
    return out;
  }

  Json final_json(const JobStart& start, const JobAnswer& answer, size_t index, const std::string& content) const {
    const ChoiceAnswer& choice = answer.choices[index];
    const bool limit = choice.reason == engine::FinishReason::kLength;
    const char* stop_type = limit ? "limit" : choice.stop_text.empty() ? "eos" : "word";
    const size_t prompt = std::min(index, start.prompts.size() - 1);
    Json out = Json::object();
    out.set("index", static_cast<int64_t>(index));
    out.set("content", content);
    out.set("tokens", options_.return_tokens ? ids_json(choice.ids) : Json::array());
    out.set("id_slot", static_cast<int64_t>(index));
    out.set("stop", true);
    out.set("model", start.model);
    out.set("tokens_predicted", choice.timings.generated_tokens);
    out.set("tokens_evaluated", choice.timings.prompt_tokens);
    out.set("generation_settings", settings_);
    out.set("prompt", start.prompt_texts[prompt]);
    out.set("has_new_line", choice.content.find('\n') != std::string::npos);
    out.set("truncated", false);
    out.set("stop_type", stop_type);
    out.set("stopping_word", choice.stop_text);
    out.set("tokens_cached", choice.timings.prompt_tokens + choice.timings.generated_tokens);
    if (probabilities_) out.set("completion_probabilities", probabilities_json(choice.logprobs));
    out.set("timings", timings_json(choice.timings));
    out.set("x_vedette", answer.x_vedette);
    return options_.response_fields.empty() ? out : project(out, options_.response_fields);
  }

  const text::Tokenizer& tokenizer_;
  const NativeOptions options_;
  const Json settings_;
  const bool probabilities_;
};

Status refuse_inert(const Fields& fields) {
  for (const InertField& field : kRefusedAbove) {
    VEDETTE_ASSIGN_OR_RETURN(auto value, fields.number(field.name, -1e15, 1e15));
    if (value && *value > field.neutral)
      return invalid_request(std::string(field.name), "{}: not available here; leave it out or send {}", field.name,
                             field.neutral);
  }
  for (const std::string_view name : kRefusedFlags) {
    VEDETTE_ASSIGN_OR_RETURN(auto value, fields.boolean(name));
    if (value.value_or(false))
      return invalid_request(std::string(name), "{}: not available here; leave it out or send false", name);
  }
  for (const std::string_view name : {"response_format", "image_data", "system_prompt"})
    if (fields.has(name))
      return invalid_request(std::string(name), "{}: not available on this route; leave it out", name);
  VEDETTE_ASSIGN_OR_RETURN(const Json* lora, fields.array("lora"));
  if (lora != nullptr && !lora->as_array().empty())
    return invalid_request("lora", "lora: no adapter is loaded; leave it out");
  return ok_status();
}

// A string, ids, a mix of both, or a list of prompts of these forms.
class PromptReader {
 public:
  PromptReader(const DialectContext& context, GenerateJob& job) : context_(context), job_(job) {}

  Status read(const Json& prompt, const std::string& path) {
    const bool several = prompt.is_array() && !prompt.as_array().empty() &&
                         (prompt.as_array().front().is_array() || all_strings(prompt.as_array()));
    if (!several) return add(prompt, path);
    constexpr size_t kMostPrompts = 128;
    if (prompt.as_array().size() > kMostPrompts)
      return wrong_value(path, fmt::format("at most {} prompts", kMostPrompts), &prompt);
    for (size_t i = 0; i < prompt.as_array().size(); ++i)
      VEDETTE_RETURN_IF_ERROR(add(prompt.as_array()[i], fmt::format("{}[{}]", path, i)));
    return ok_status();
  }

 private:
  static bool all_strings(const Json::Array& list) {
    for (const Json& item : list)
      if (!item.is_string()) return false;
    return true;
  }

  Status add(const Json& prompt, const std::string& path) {
    if (prompt.is_string()) {
      job_.prompts.emplace_back(prompt.as_string());
      return ok_status();
    }
    if (!prompt.is_array() || prompt.as_array().empty())
      return wrong_value(path, "a string, token ids, or a list of both", &prompt);
    std::vector<int32_t> ids;
    for (size_t i = 0; i < prompt.as_array().size(); ++i) {
      const Json& item = prompt.as_array()[i];
      if (item.is_string()) {
        VEDETTE_ASSIGN_OR_RETURN(const auto part, context_.tokenizer.encode(item.as_string(), {.add_special = i == 0}));
        ids.insert(ids.end(), part.begin(), part.end());
      } else if (item.is_int() && item.as_int() >= 0 && item.as_int() < context_.vocab_size) {
        ids.push_back(static_cast<int32_t>(item.as_int()));
      } else {
        return wrong_value(fmt::format("{}[{}]", path, i),
                           fmt::format("a string or a token id from 0 to {}", context_.vocab_size - 1), &item);
      }
    }
    job_.prompts.emplace_back(std::move(ids));
    return ok_status();
  }

  const DialectContext& context_;
  GenerateJob& job_;
};

// Everything but the prompt.
Status read_common(const Json& body, const DialectContext& context, Translation& out) {
  const Fields fields(body);
  GenerateJob& job = out.job;
  job.split_message = false;
  job.sampling = context.defaults;
  VEDETTE_RETURN_IF_ERROR(refuse_inert(fields));
  VEDETTE_RETURN_IF_ERROR(read_sampling_fields(body, context, job));
  VEDETTE_RETURN_IF_ERROR(read_response_format(fields, job));
  for (const std::string_view name : {"max_tokens", "n_predict"}) {
    VEDETTE_ASSIGN_OR_RETURN(auto value, fields.integer(name, -2, 1'000'000'000));
    // llama-server: 0 evaluates the prompt and still gives one token here; below 0 there is no limit.
    if (value) job.max_tokens = *value < 0 ? -1 : std::max<int64_t>(1, *value);
  }
  VEDETTE_ASSIGN_OR_RETURN(auto probabilities, fields.integer("n_probs", 0, sampling::kMaxTopLogprobs));
  if (probabilities && *probabilities > 0) job.logprobs = static_cast<int>(*probabilities);
  NativeOptions options;
  VEDETTE_ASSIGN_OR_RETURN(auto tokens, fields.boolean("return_tokens"));
  options.return_tokens = tokens.value_or(false);
  VEDETTE_ASSIGN_OR_RETURN(auto timings, fields.boolean("timings_per_token"));
  options.timings_per_token = timings.value_or(false);
  VEDETTE_ASSIGN_OR_RETURN(auto paths, fields.strings("response_fields", 64));
  if (paths) options.response_fields = std::move(*paths);
  VEDETTE_RETURN_IF_ERROR(fields.integer("id_slot", -1, 1'000'000));
  VEDETTE_ASSIGN_OR_RETURN(const StreamOptions stream, read_stream_options(fields));
  job.stream = stream.stream;
  note_unknown_fields(body, kKnown, job);
  out.writer =
      std::make_unique<NativeWriter>(context.tokenizer, std::move(options), settings_json(job), job.logprobs >= 0);
  return ok_status();
}

Result<Translation> translate(const Json& body, const DialectContext& context) {
  Translation out;
  const Fields fields(body);
  const Json* prompt = fields.get("prompt");
  if (prompt == nullptr) return fields.wrong("prompt", "a string, token ids, or a list of both");
  VEDETTE_RETURN_IF_ERROR(PromptReader(context, out.job).read(*prompt, "prompt"));
  VEDETTE_RETURN_IF_ERROR(read_common(body, context, out));
  return out;
}

// The three marks of fill-in-the-middle, by the names models give them.
struct InfillMarks {
  std::string_view prefix, suffix, middle;
};
constexpr InfillMarks kInfillMarks[] = {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
                                        {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
                                        {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
                                        {"<|fim▁begin|>", "<|fim▁hole|>", "<|fim▁end|>"},
                                        {"<PRE>", "<SUF>", "<MID>"},
                                        {"[PREFIX]", "[SUFFIX]", "[MIDDLE]"}};

Result<InfillMarks> find_marks(const text::Tokenizer& tokenizer) {
  for (const InfillMarks& marks : kInfillMarks)
    if (tokenizer.id_of(marks.prefix) && tokenizer.id_of(marks.suffix) && tokenizer.id_of(marks.middle)) return marks;
  return unsupported("",
                     "infill: the vocabulary has no marks for fill-in-the-middle (<|fim_prefix|>, <|fim_suffix|>, "
                     "<|fim_middle|> or the like); use a model made for it");
}

Status append_text(const text::Tokenizer& tokenizer, const std::string& text, std::vector<int32_t>& ids) {
  VEDETTE_ASSIGN_OR_RETURN(const auto part, tokenizer.encode(text, {.add_special = false, .parse_special = false}));
  ids.insert(ids.end(), part.begin(), part.end());
  return ok_status();
}

Result<Translation> translate_infill(const Json& body, const DialectContext& context) {
  const Fields fields(body);
  const text::Tokenizer& tokenizer = context.tokenizer;
  VEDETTE_ASSIGN_OR_RETURN(const InfillMarks marks, find_marks(tokenizer));
  VEDETTE_ASSIGN_OR_RETURN(auto prefix, fields.string("input_prefix"));
  VEDETTE_ASSIGN_OR_RETURN(auto suffix, fields.string("input_suffix"));
  if (!prefix) return fields.wrong("input_prefix", "a string");
  if (!suffix) return fields.wrong("input_suffix", "a string");
  VEDETTE_ASSIGN_OR_RETURN(auto prompt, fields.string("prompt"));
  VEDETTE_ASSIGN_OR_RETURN(const Json* extra, fields.array("input_extra"));
  std::vector<int32_t> ids;
  if (tokenizer.bos()) ids.push_back(*tokenizer.bos());
  for (size_t i = 0; extra != nullptr && i < extra->as_array().size(); ++i) {
    const Json& file = extra->as_array()[i];
    const std::string path = fmt::format("input_extra[{}]", i);
    if (!file.is_object()) return wrong_value(path, "an object with filename and text", &file);
    const Fields inner(file, path + ".");
    VEDETTE_ASSIGN_OR_RETURN(auto name, inner.string("filename"));
    VEDETTE_ASSIGN_OR_RETURN(auto text, inner.string("text"));
    if (!text) return inner.wrong("text", "a string");
    VEDETTE_RETURN_IF_ERROR(append_text(tokenizer, name.value_or("") + "\n" + *text + "\n", ids));
  }
  // Text of users is never read as marks: it is encoded without special tokens.
  ids.push_back(*tokenizer.id_of(marks.prefix));
  VEDETTE_RETURN_IF_ERROR(append_text(tokenizer, *prefix, ids));
  ids.push_back(*tokenizer.id_of(marks.suffix));
  VEDETTE_RETURN_IF_ERROR(append_text(tokenizer, *suffix, ids));
  ids.push_back(*tokenizer.id_of(marks.middle));
  VEDETTE_RETURN_IF_ERROR(append_text(tokenizer, prompt.value_or(""), ids));
  Translation out;
  VEDETTE_RETURN_IF_ERROR(read_common(body, context, out));
  out.job.prompts.emplace_back(std::move(ids));
  return out;
}

}  // namespace

const Dialect kNativeDialect{"native", translate, openai_error};
const Dialect kInfillDialect{"infill", translate_infill, openai_error};

}  // namespace vedette::server
