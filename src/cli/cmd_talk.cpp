// `run` and `generate`: one prompt and its reply, or the interactive chat.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "cli/context.h"
#include "cli/fetch_model.h"
#include "cli/prompt.h"
#include "cli/reply_printer.h"
#include "cli/settings.h"
#include "cli/talk.h"
#include "cli/terminal.h"
#include "hub/hugging_face_cache.h"

namespace vedette::cli {
namespace {

std::string history_file(const hub::StoreSettings& store) {
  namespace fs = std::filesystem;
  const fs::path cache =
      store.cache_dir.empty() ? fs::path(hub::home_folder()) / ".cache" / "vedette" : fs::path(store.cache_dir);
  return (cache / "history").string();
}

Status read_prompt(const OptionValues& options, TalkSettings& settings) {
  settings.prompt = options.given("--prompt") ? options.text("--prompt") : std::nullopt;
  const auto file = options.text("--prompt-file");
  settings.system = options.text("--system").value_or("");
  if (settings.prompt && file)
    return invalid_request("--prompt-file", "--prompt and --prompt-file exclude each other; give one");
  if (file) {
    VEDETTE_ASSIGN_OR_RETURN(settings.prompt, read_prompt_file(*file));
  }
  if (settings.prompt)
    VEDETTE_RETURN_IF_ERROR(check_prompt_text(*settings.prompt, file ? "--prompt-file" : "--prompt"));
  if (!settings.system.empty()) VEDETTE_RETURN_IF_ERROR(check_prompt_text(settings.system, "--system"));
  return ok_status();
}

Status read_sampling_options(const OptionValues& options, bool from_model, TalkSettings& settings) {
  VEDETTE_ASSIGN_OR_RETURN(settings.generation, read_generation(options));
  settings.generation.from_model = from_model;
  settings.max_tokens = options.integer("--max-tokens").value_or(-1);
  settings.stop = options.texts("--stop");
  settings.ignore_eos = options.flag("--ignore-eos");
  if (settings.max_tokens == 0)
    return invalid_request("--max-tokens", "--max-tokens: expected at least 1, or -1 for no limit, found 0");
  for (const std::string& stop : settings.stop) VEDETTE_RETURN_IF_ERROR(check_prompt_text(stop, "--stop"));
  return ok_status();
}

Result<TalkSettings> read_talk(const Context& context) {
  const OptionValues& options = context.options;
  TalkSettings settings;
  settings.model = read_model(options);
  if (settings.model.model.empty() && context.subcommand == "run") settings.model.model = hub::kDefaultModel;
  VEDETTE_ASSIGN_OR_RETURN(settings.load, read_compute(options));
  settings.load.context_length = options.integer("--ctx-size").value_or(0);
  VEDETTE_ASSIGN_OR_RETURN(settings.memory, read_memory(options));
  VEDETTE_RETURN_IF_ERROR(read_sampling_options(options, context.subcommand == "run", settings));
  settings.raw = options.flag("--no-chat-template");
  settings.show_reasoning = options.flag("--show-reasoning");
  settings.stream = !options.flag("--no-stream");
  settings.profile = options.flag("--profile");
  settings.json = options.flag("--json");
  settings.estimate_memory = options.flag("--estimate-memory");
  settings.force = options.flag("--force");
  settings.quiet = read_verbosity(options).quiet;
  settings.history_file = history_file(settings.model.store);
  VEDETTE_RETURN_IF_ERROR(read_prompt(options, settings));
  // One prompt has no other to share anything with.
  settings.load.prefix_cache = !settings.prompt;
  if (settings.json && !settings.prompt)
    return invalid_request("--json", "--json needs one prompt; give --prompt or --prompt-file");
  if (settings.raw && !settings.system.empty())
    return invalid_request("--system", "--system needs the chat template; leave out --no-chat-template");
  return settings;
}

Result<int> run_one_shot(Talk& talk, const TalkSettings& settings) {
  ReplyPrinter printer(settings.show_reasoning, settings.stream && !settings.json);
  VEDETTE_ASSIGN_OR_RETURN(const Reply reply, talk.reply(given_prompt(settings), [&](const text::MessagePart& part) {
    return printer.add(part);
  }));
  const int code = reply.interrupted ? kExitInterrupted : kExitDone;
  if (reply.quit) return code;
  if (reply.answer.max_tokens_clamped) {
    print_notice(fmt::format("--max-tokens {} goes beyond the context of {} tokens; the reply may end there",
                             settings.max_tokens, talk.report().context_length));
  }
  if (settings.json) {
    VEDETTE_RETURN_IF_ERROR(print(reply_json(talk, reply).dump() + "\n"));
    return code;
  }
  if (!settings.stream) VEDETTE_RETURN_IF_ERROR(printer.print_whole(reply));
  VEDETTE_RETURN_IF_ERROR(print("\n\n" + (settings.profile ? profile_block(reply) : summary_line(reply))));
  return code;
}

}  // namespace

Result<int> run_talk(Context& context) {
  VEDETTE_ASSIGN_OR_RETURN(const TalkSettings settings, read_talk(context));
  VEDETTE_RETURN_IF_ERROR(start(context));
  // Before interrupts are caught: one ends a download, which goes on next time.
  if (const auto found = find_model(settings.model.model, settings.model, settings.quiet); !found.ok())
    return found.error();
  Interrupts interrupts;
  VEDETTE_ASSIGN_OR_RETURN(std::unique_ptr<Talk> talk, Talk::open(settings, interrupts));
  auto code = settings.prompt ? run_one_shot(*talk, settings) : run_chat(*talk, settings, interrupts);
  // The engine's thread may be in the middle of a long step; nothing waits for it.
  if (code.ok() && *code == kExitInterrupted) std::_Exit(kExitInterrupted);
  return code;
}

}  // namespace vedette::cli
