// A loaded model and what `run` and `generate` ask of it: prompts in, replies out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/interrupts.h"
#include "cli/memory_report.h"
#include "cli/prompt.h"
#include "cli/reasoning_filter.h"
#include "cli/settings.h"
#include "engine/engine.h"
#include "engine/load.h"

namespace vedette::cli {

struct TalkSettings {
  ModelSettings model;
  engine::LoadOptions load;
  MemorySettings memory;
  sampling::SamplingParams sampling;
  bool sampling_from_model = false;  // `run`: what is unset comes from generation_config.json
  bool temperature_given = false, top_k_given = false, top_p_given = false, min_p_given = false;
  std::optional<std::string> prompt;
  std::string system;
  int64_t max_tokens = -1;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool raw = false;
  bool show_reasoning = false;
  bool stream = true;
  bool profile = false;
  bool json = false;
  bool estimate_memory = false, force = false;
  bool quiet = false;
  std::string history_file;
};

struct Reply {
  std::string answer;
  std::string reasoning;
  std::vector<int32_t> ids;
  engine::Event finish;      // kFinished
  bool interrupted = false;  // Ctrl-C once: cancelled
  bool quit = false;         // Ctrl-C again while stopping
};

// Main thread only.
class Talk {
 public:
  // Resolves, checks and loads the model. Prints the start line.
  static Result<std::unique_ptr<Talk>> open(const TalkSettings& settings, Interrupts& interrupts);

  // One user turn after the given messages (none in raw mode).
  Result<Prompt> prompt_for(const Json& messages) const;
  Result<Prompt> prompt_for(const std::string& text) const;

  // Runs to the end. on_part gets each piece as it is decided; its error cancels the reply and is returned.
  Result<Reply> reply(const Prompt& prompt, const std::function<Status(const ReplyPart&)>& on_part);

  const engine::LoadReport& report() const { return model_.report; }
  const std::string& name() const { return name_; }

 private:
  Talk(const TalkSettings& settings, Interrupts& interrupts, PromptBuilder prompts, engine::LoadedModel model);
  const TalkSettings& settings_;
  Interrupts& interrupts_;
  PromptBuilder prompts_;
  engine::LoadedModel model_;
  std::string name_;
  sampling::SamplingParams sampling_;
};

// The lines after a reply, and the JSON object of --json.
std::string summary_line(const Reply& reply);
std::string profile_block(const Reply& reply);
Json reply_json(const Talk& talk, const Prompt& prompt, const Reply& reply);

// The interactive chat; returns the exit code.
Result<int> run_chat(Talk& talk, const TalkSettings& settings, Interrupts& interrupts);

}  // namespace vedette::cli
