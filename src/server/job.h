// What all dialects translate to and from: one internal request, its events, its answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/engine.h"
#include "sampling/sampling.h"
#include "text/grammar.h"
#include "text/language_bias.h"
#include "text/message_parser.h"

namespace vedette::server {

enum class Thinking : uint8_t { kDefault, kOn, kOff };

// Rendered by the model's chat template.
struct Conversation {
  // As chat templates take them: {role, content, tool_calls, tool_call_id, name, reasoning_content}. Content is a
  // string or null; dialects have joined text parts and refused what is no text. Arguments of tool calls are objects.
  Json messages = Json::array();
  bool continue_last = false;  // the last message is the assistant's and its reply goes on from there
  Json template_kwargs = {};   // null or object
  Thinking thinking = Thinking::kDefault;
  std::string effort = {};  // "": the server's default; else one of low, medium, high, xhigh (dialects map others)
};

// A conversation, a text as it is, or token ids.
using JobPrompt = std::variant<Conversation, std::string, std::vector<int32_t>>;

struct OutputFormat {
  std::optional<text::Grammar> grammar = {};
  std::string field = {};  // of the request, for messages: "response_format.json_schema.schema"
};

struct GenerateJob {
  std::vector<JobPrompt> prompts;  // one; completions may have several
  int n = 1;                       // choices of each prompt
  std::vector<text::ToolSpec> tools = {};
  text::ToolChoice tool_choice = {};
  OutputFormat format = {};
  sampling::SamplingParams sampling = {};      // the server's defaults with the request's fields over them
  std::vector<std::string> dry_breakers = {};  // texts
  std::optional<text::LanguageBias::Entries> language_bias = {};  // absent: the server's default
  std::optional<int64_t> max_tokens = {};  // absent: the server's default; 0: the prompt alone is computed
  std::vector<std::string> stop = {};
  bool ignore_eos = false;
  bool split_message = true;     // reasoning and tool calls are told apart (chats); false: all text is content
  bool keep_reasoning = true;    // false: reasoning is parsed and dropped
  int64_t thinking_budget = -1;  // tokens; 0: closed at once; -1: no limit
  std::shared_ptr<std::atomic<bool>> end_reasoning =
      {};                        // set while the job runs, it closes the block; null: nobody may
  int logprobs = -1;             // alternatives per token; -1: none
  bool prompt_logprobs = false;  // of the prompt's tokens too
  bool stream = false;
  bool progress = false;  // events during prefill
  engine::LoopLimits loop = {};
  int priority = 0;
  bool cache_prompt = true;
  std::vector<std::string> warnings = {};        // told in x_vedette
  std::vector<std::string> ignored_fields = {};  // top-level fields of the request that nothing knows
};

struct JobEvent {
  enum class Kind : uint8_t { kProgress, kPrompt, kText, kEnd } kind = Kind::kText;
  int choice = 0;  // prompt * n + index
  // kProgress
  int64_t prefilled = 0, prompt_tokens = 0;
  // kText: what one or more tokens brought; any of the lists may be empty
  std::vector<int32_t> ids = {};
  std::vector<engine::TokenLogprobs> logprobs = {};  // kPrompt: of the prompt's next tokens, from its second on
  std::vector<text::MessagePart> parts = {};
  // Where log probabilities are wanted, [part]: those of the tokens that a kContent part was written with.
  std::vector<std::vector<engine::TokenLogprobs>> part_logprobs = {};
};

struct CallAnswer {
  std::string id;  // 24 hexadecimal digits; dialects put their prefix before it
  std::string name;
  std::string arguments;  // JSON text of an object, or raw text where malformed
  bool malformed = false;
};

// A stretch of an answer, in the order in which the model wrote it.
struct AnswerItem {
  enum class Kind : uint8_t { kReasoning, kContent, kCall } kind = Kind::kContent;
  std::string text = {};                             // kReasoning, kContent
  size_t call = 0;                                   // kCall: index into calls
  std::vector<engine::TokenLogprobs> logprobs = {};  // kContent, where wanted
};

struct ChoiceAnswer {
  std::string reasoning, content;  // all of a kind together
  std::vector<AnswerItem> items;
  std::vector<CallAnswer> calls;
  engine::FinishReason reason = engine::FinishReason::kStop;
  std::string stop_text;  // the stop string that matched
  std::vector<int32_t> ids;
  std::vector<engine::TokenLogprobs> logprobs;
  std::vector<engine::TokenLogprobs> prompt_logprobs;  // of the prompt's tokens but the first
  int64_t reasoning_tokens = 0;
  engine::Timings timings;
  engine::CacheReport cache;
  uint64_t seed = 0;
  bool max_tokens_clamped = false;
};

// Known once all prompts are admitted: before the first byte of an answer.
struct JobStart {
  std::string model;                               // as answers name it
  int64_t created = 0;                             // seconds since 1970
  std::string id;                                  // 24 hexadecimal digits
  std::vector<std::vector<int32_t>> prompts;       // ids
  std::vector<std::string> prompt_texts;           // as rendered
  std::vector<std::vector<std::string>> call_ids;  // grows while calls appear: [choice][call]
};

struct JobAnswer {
  std::vector<ChoiceAnswer> choices;
  int64_t prompt_tokens = 0;  // of all prompts
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;  // of all choices, reasoning included
  int64_t reasoning_tokens = 0;
  Json x_vedette;
};

}  // namespace vedette::server
