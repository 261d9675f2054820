// A loaded model with all that turns requests into prompts and replies into messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/load.h"
#include "sampling/sampling.h"
#include "server/model_tables.h"
#include "text/chat_template.h"
#include "text/grammar.h"
#include "text/message_parser.h"
#include "weights/checkpoint.h"

namespace vedette::server {

// What a server is told about generation, for requests that say nothing.
struct GenerationDefaults {
  sampling::SamplingParams sampling;  // of the command line
  bool from_model = true;             // false: generation_config.json is not asked
  // Fields of `sampling` that the command line set; others come from generation_config.json where it samples.
  bool temperature_set = false, top_k_set = false, top_p_set = false, min_p_set = false;
  bool penalty_set = false;
  int64_t max_tokens = -1;     // -1: until the context is full
  int64_t max_tokens_cap = 0;  // 0: none
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  text::LanguageBias language_bias;
  std::optional<text::Grammar> grammar;
  std::optional<bool> thinking;  // absent: as the template does
  std::string effort;
  int64_t thinking_budget = -1;
  Json template_kwargs;  // null or object
  bool ignore_eos = false;
  std::vector<std::string> stop;
  engine::LoopLimits loop;
};

struct GenerateJob;
// Sees each request of a job before the engine does, with the index of its choice, and may change it.
using SubmitHook = std::function<void(const GenerateJob& job, int choice, engine::GenerateRequest& request)>;

// Shared by the jobs that run on it; unloading drops the host's reference, the last job frees it. Immutable but for the
// engine and the grammars, which are thread-safe.
struct ServedModel {
  std::string id;  // as answers name it
  std::vector<std::string> aliases;
  std::string path, format, family;
  std::string template_source;  // "" where the checkpoint has none
  std::optional<text::ChatTemplate> chat_template;
  bool template_knows_tools = false;
  bool template_knows_thinking = false;  // reads enable_thinking
  bool template_knows_effort = false;    // reads reasoning_effort
  Json special_tokens;                   // for the template
  text::MessageFormat message_format;
  std::vector<int32_t> visible_specials;  // marks of the format that are special tokens
  std::vector<std::string> special_marks;
  std::optional<text::Tokenizer> first_tokenizer;  // until there is an engine, which takes it
  int64_t vocabulary = 0;
  // With generation_config.json applied; PATCH /v1/settings publishes others. A request reads them when it needs them.
  std::atomic<std::shared_ptr<const GenerationDefaults>> defaults;
  std::shared_ptr<const GenerationDefaults> first_defaults;  // as loaded
  engine::LoadReport report;
  int64_t loaded_at = 0;  // seconds since 1970
  bool has_sliding_layers = false;
  SubmitHook before_submit;
  std::shared_ptr<const void> storage;

  const text::Tokenizer& tokenizer() const { return engine ? engine->tokenizer() : *first_tokenizer; }
  int64_t vocab_size() const { return vocabulary; }
  // Over the vocabulary; made once. Any thread.
  Result<const text::GrammarCompiler*> grammars() const;
  mutable ModelTables tables;
  mutable std::mutex grammars_mutex;
  mutable std::unique_ptr<text::GrammarCompiler> made_grammars;

  std::unique_ptr<engine::Engine> engine;  // last: stops before what it uses goes
};

struct ServedModelOptions {
  std::string path;  // of the checkpoint
  std::string id;
  std::vector<std::string> aliases;
  engine::LoadOptions load;
  GenerationDefaults defaults;
  std::string chat_template;  // replaces the checkpoint's; "" keeps it
  bool constrains = true;     // replies may be constrained: what that takes is made at once, not when it is used
  bool use_template = true;   // false: the checkpoint's is not read
  // Asked before the weights are loaded and may change how they are; an error ends the loading. build_prompt() works on
  // the model, which has no engine yet.
  std::function<Status(const weights::Checkpoint&, const ServedModel&, engine::LoadOptions&)> before_load;
  SubmitHook before_submit;  // tests: scripted replies
};

// The field of an error about a chat template that does not parse.
inline constexpr std::string_view kTemplateField = "chat_template";

// A model as far as it can be made beside one that serves: all but its weights.
struct OpenedModel {
  weights::Checkpoint checkpoint;
  std::shared_ptr<ServedModel> model;
};

// Opens and checks. Errors of the layers below, kCorruptFile for values of generation_config.json, and kInvalidRequest
// with field "context_length".
Result<OpenedModel> open_model(const ServedModelOptions& options);
Result<std::shared_ptr<ServedModel>> load_model(OpenedModel opened, const ServedModelOptions& options);
// Opens, checks and loads. Errors of the layers below, and kCorruptFile for values of generation_config.json.
Result<std::shared_ptr<ServedModel>> serve_model(const ServedModelOptions& options);

}  // namespace vedette::server
