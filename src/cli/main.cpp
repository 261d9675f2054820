// Entry point: finds the subcommand, parses its options, prints its error.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/utf8.h"
#include "cli/context.h"
#include "cli/parser.h"
#include "cli/terminal.h"

namespace vedette::cli {
namespace {

int fail(int code, std::string_view message) {
  print_error(message);
  return code;
}

// A wrong value of an option is wrong usage, whenever it is noticed; a model or a prompt at fault is not.
int exit_code(const Error& error) {
  const bool wrong = error.kind == ErrorKind::kInvalidRequest || error.kind == ErrorKind::kUnsupported;
  return wrong && error.field.starts_with("--") ? kExitUsage : kExitError;
}

int unknown_subcommand(const std::string& word) {
  const std::string near = nearest_subcommand(word);
  return fail(kExitUsage, fmt::format("unknown subcommand '{}'{}; `vedette help` lists them", word.substr(0, 60),
                                      near.empty() ? "" : fmt::format(", did you mean {}?", near)));
}

int run_subcommand(const SubcommandSpec& spec, std::vector<std::string> arguments) {
  if (spec.state != OptionState::kActive) return fail(kExitUsage, fmt::format("{}: {}", spec.name, spec.note));
  auto line = parse_line(spec, std::move(arguments));
  if (!line.ok()) return fail(kExitUsage, line.error().message);
  if (line->help) {
    auto status = print(help_text(spec.name));
    return status.ok() ? kExitDone : fail(kExitError, status.error().message);
  }
  for (const Subcommand& subcommand : subcommands()) {
    if (subcommand.name != spec.name) continue;
    auto code = subcommand.run(line->context);
    return code.ok() ? *code : fail(exit_code(code.error()), code.error().message);
  }
  return fail(kExitError, fmt::format("{}: stands in the option table but has no implementation", spec.name));
}

// The program under the name vedette-server is `vedette serve`, but for the subcommands that a server machine needs
// too.
void apply_program_name(std::string_view program, std::vector<std::string>& arguments) {
  if (program.substr(program.rfind('/') + 1) != "vedette-server") return;
  const std::string_view first = arguments.empty() ? std::string_view() : arguments.front();
  for (const std::string_view known :
       {"serve", "download", "rm", "list", "ls", "models", "doctor", "help", "version"}) {
    if (first == known) return;
  }
  if (first != "-V" && first != "--version") arguments.insert(arguments.begin(), "serve");
}

int dispatch(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    print_error("no subcommand given; `vedette help` lists them, `vedette run` opens a chat");
    return kExitUsage;
  }
  std::string first = arguments.front();
  if (first == "-h" || first == "--help") first = "help";
  if (first == "-V" || first == "--version") first = "version";
  // Options without a subcommand mean generate.
  if (first.starts_with('-'))
    first = "generate";
  else
    arguments.erase(arguments.begin());
  const SubcommandSpec* spec = find_subcommand(first);
  return spec == nullptr ? unknown_subcommand(first) : run_subcommand(*spec, std::move(arguments));
}

// A file opened later must not become standard input or output. Open for reading: what is written fails, as it would
// on the closed descriptor, and what is read has ended.
void open_missing_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) (void)open("/dev/null", O_RDONLY);
  }
}

}  // namespace
}  // namespace vedette::cli

int main(int argc, char** argv) {
  vedette::cli::open_missing_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write
  std::signal(SIGXFSZ, SIG_IGN);  // and so is the limit on the size of a file
  try {
    std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    vedette::cli::apply_program_name(argc > 0 ? argv[0] : "", arguments);
    return vedette::cli::dispatch(std::move(arguments));
  } catch (const std::exception& error) {
    return vedette::cli::fail(vedette::cli::kExitError,
                              fmt::format("internal error: {}; please report it with the command line", error.what()));
  }
}
