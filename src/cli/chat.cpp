// The interactive chat: lines in, replies out, the transcript kept.
#include <fmt/format.h>

#include "base/error.h"
#include "cli/context.h"
#include "cli/line_editor.h"
#include "cli/prompt.h"
#include "cli/reply_printer.h"
#include "cli/talk.h"
#include "cli/terminal.h"

namespace vedette::cli {
namespace {

constexpr std::string_view kHelp =
    "/help, /?       this list\n"
    "/clear          a new conversation\n"
    "/bye            leave (also Ctrl-D)\n"
    "\"\"\" ... \"\"\"     a message of several lines\n"
    "Ctrl-C          cancel the reply, or the line; twice while a reply stops: leave\n";
constexpr std::string_view kBlock = "\"\"\"";

class Chat {
 public:
  Chat(Talk& talk, const TalkSettings& settings, Interrupts& interrupts)
      : talk_(talk), settings_(settings), editor_(interrupts, settings.history_file) {
    clear();
  }

  Result<int> run() {
    if (stdin_is_terminal()) VEDETTE_RETURN_IF_ERROR(print("/help lists the commands, /bye leaves.\n"));
    for (;;) {
      VEDETTE_ASSIGN_OR_RETURN(auto message, read_message());
      if (!message) return code_;
      if (message->empty()) continue;
      if (message->starts_with('/')) {
        VEDETTE_ASSIGN_OR_RETURN(bool go_on, run_command(*message));
        if (!go_on) return kExitDone;
        continue;
      }
      VEDETTE_ASSIGN_OR_RETURN(bool go_on, answer(*message));
      if (!go_on) return kExitInterrupted;
    }
  }

 private:
  void clear() {
    messages_ = Json::array();
    if (!settings_.system.empty()) messages_.push_back(message("system", settings_.system));
  }

  // A line or a block; "" for a dropped line; nothing at the end of the input.
  Result<std::optional<std::string>> read_message() {
    using Message = std::optional<std::string>;
    VEDETTE_ASSIGN_OR_RETURN(InputLine line, read_line(">>> "));
    if (line.kind == InputLine::Kind::kEnd || line.kind == InputLine::Kind::kStopped) return Message();
    if (line.kind == InputLine::Kind::kInterrupted) return Message("");
    if (!line.text.starts_with(kBlock)) {
      editor_.remember(line.text);
      return Message(line.text);
    }
    std::string block = line.text.substr(kBlock.size());
    while (!block.ends_with(kBlock)) {
      VEDETTE_ASSIGN_OR_RETURN(line, read_line("... "));
      if (line.kind == InputLine::Kind::kInterrupted) return Message("");
      if (line.kind == InputLine::Kind::kStopped) return Message();
      if (line.kind == InputLine::Kind::kEnd && stdin_is_terminal()) return Message();
      // The end of a file closes a block.
      block += line.kind == InputLine::Kind::kEnd ? std::string(kBlock) : "\n" + line.text;
    }
    block.erase(block.size() - kBlock.size());
    if (block.starts_with('\n')) block.erase(0, 1);
    if (block.ends_with('\n')) block.pop_back();
    editor_.remember(std::string(kBlock) + block + std::string(kBlock));
    return Message(std::move(block));
  }

  Result<InputLine> read_line(const char* prompt) {
    InputLine line = editor_.read(prompt);
    if (line.kind == InputLine::Kind::kFailed)
      return unavailable("", "standard input cannot be read: {}; give the prompt with --prompt or --prompt-file",
                         line.text);
    return line;
  }

  // False: leave.
  Result<bool> run_command(const std::string& line) {
    const std::string command = line.substr(0, line.find(' '));
    if (command == "/bye" || command == "/exit" || command == "/quit") return false;
    if (command == "/clear") {
      clear();
      VEDETTE_RETURN_IF_ERROR(print("(new conversation)\n"));
    } else if (command == "/help" || command == "/?") {
      VEDETTE_RETURN_IF_ERROR(print(kHelp));
    } else if (command == "/image") {
      VEDETTE_RETURN_IF_ERROR(print("image input: this build has no vision models yet\n"));
    } else {
      VEDETTE_RETURN_IF_ERROR(print(fmt::format("unknown command {}; /help lists them\n", printable(command))));
    }
    return true;
  }

  Result<Reply> reply_to(const std::string& text, const PartSink& on_part) {
    VEDETTE_RETURN_IF_ERROR(check_prompt_text(text, "message"));
    if (settings_.raw) return talk_.reply(text, on_part);
    Json messages = messages_;
    messages.push_back(message("user", text));
    return talk_.reply(server::Conversation{.messages = std::move(messages)}, on_part);
  }

  // A failed or cancelled exchange leaves the transcript as it was. False: leave.
  Result<bool> answer(const std::string& text) {
    ReplyPrinter printer(settings_.show_reasoning, settings_.stream);
    Status output = ok_status();
    auto reply = reply_to(text, [&](const text::MessagePart& part) {
      Status printed = printer.add(part);
      if (!printed.ok()) output = printed;
      return printed;
    });
    if (!output.ok()) return std::move(output).error();
    if (!reply.ok()) return report(reply.error());
    if (reply->quit) return false;
    if (!settings_.stream) VEDETTE_RETURN_IF_ERROR(printer.print_whole(*reply));
    VEDETTE_RETURN_IF_ERROR(print(reply->interrupted ? "\n(cancelled)\n\n" : "\n\n"));
    if (settings_.profile) VEDETTE_RETURN_IF_ERROR(print(profile_block(*reply) + "\n"));
    const bool by_limit = settings_.max_tokens > 0 && !reply->answer.max_tokens_clamped;
    if (reply->answer.reason == engine::FinishReason::kLength && !by_limit) {
      print_notice(
          fmt::format("the reply ended because the context of {} tokens is full; /clear starts a new conversation",
                      talk_.report().context_length));
    }
    if (reply->interrupted || settings_.raw) return true;
    messages_.push_back(message("user", text));
    messages_.push_back(message("assistant", reply->answer.content));
    return true;
  }

  // On a terminal the chat goes on; a script's failed line is its exit code.
  bool report(const Error& error) {
    std::string hint = messages_.as_array().size() > 1 ? "; /clear starts a new conversation" : "";
    print_error(error.message + hint);
    if (!stdin_is_terminal()) code_ = kExitError;
    return true;
  }

  Talk& talk_;
  const TalkSettings& settings_;
  LineEditor editor_;
  Json messages_;
  int code_ = kExitDone;
};

}  // namespace

Result<int> run_chat(Talk& talk, const TalkSettings& settings, Interrupts& interrupts) {
  return Chat(talk, settings, interrupts).run();
}

}  // namespace vedette::cli
