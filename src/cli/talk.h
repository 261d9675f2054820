// A loaded model and what `run` and `generate` ask of it: prompts in, replies out. What a server does for its clients,
// without a listener.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/interrupts.h"
#include "cli/memory_report.h"
#include "cli/settings.h"
#include "engine/load.h"
#include "server/executor.h"
#include "server/job.h"
#include "server/served_model.h"
#include "text/message_parser.h"

namespace vedette::cli {

struct TalkSettings {
  ModelSettings model;
  engine::LoadOptions load;
  MemorySettings memory;
  server::GenerationDefaults generation;
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
  std::vector<int32_t> prompt_ids;
  server::ChoiceAnswer answer;
  bool interrupted = false;  // Ctrl-C once: cancelled
  bool quit = false;         // Ctrl-C again while stopping; there is no answer
};

// Its error cancels the reply and is returned.
using PartSink = std::function<Status(const text::MessagePart&)>;

// Main thread only.
class Talk {
 public:
  // Resolves, checks and loads the model. Prints the start line.
  static Result<std::unique_ptr<Talk>> open(const TalkSettings& settings, Interrupts& interrupts);
  ~Talk();

  // Runs to the end. on_part gets each piece as it is decoded.
  Result<Reply> reply(server::JobPrompt prompt, const PartSink& on_part);

  const engine::LoadReport& report() const { return model_->report; }
  const std::string& name() const { return model_->id; }

 private:
  Talk(const TalkSettings& settings, Interrupts& interrupts) : settings_(settings), interrupts_(interrupts) {}
  void tell_warnings(const Json& warnings);

  const TalkSettings& settings_;
  Interrupts& interrupts_;
  server::Executor executor_{1};
  std::shared_ptr<server::ServedModel> model_;
  std::set<std::string> told_;  // warnings
};

// The prompt of a command line: a conversation of one turn, or the text as it is.
server::JobPrompt given_prompt(const TalkSettings& settings);

// The lines after a reply, and the JSON object of --json.
std::string summary_line(const Reply& reply);
std::string profile_block(const Reply& reply);
Json reply_json(const Talk& talk, const Reply& reply);

// The interactive chat; returns the exit code.
Result<int> run_chat(Talk& talk, const TalkSettings& settings, Interrupts& interrupts);

}  // namespace vedette::cli
