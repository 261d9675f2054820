// `help`, `version` and the texts of --help, from the option tables.
#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "cli/context.h"
#include "cli/terminal.h"
#include "cli/version.h"

namespace vedette::cli {
namespace {

constexpr size_t kColumn = 36;
constexpr size_t kWidth = 110;

// Breaks a text at spaces into lines that start at kColumn.
std::string wrapped(std::string_view text) {
  std::string out;
  size_t line = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line > 0 && kColumn + line + word.size() + 1 > kWidth) {
      out += "\n" + std::string(kColumn, ' ');
      line = 0;
    } else if (line > 0) {
      out += ' ';
      ++line;
    }
    out += word;
    line += word.size();
  }
  return out;
}

std::string row(std::string left, std::string_view right) {
  if (left.size() + 2 > kColumn)
    left += "\n" + std::string(kColumn, ' ');
  else
    left.resize(kColumn, ' ');
  return left + wrapped(right) + "\n";
}

std::string option_row(const OptionSpec& option) {
  std::string left = "  ";
  for (std::string_view alias : option.aliases) {
    if (alias.size() == 2) left += fmt::format("{}, ", alias);
  }
  left += option.name;
  if (!option.value_name.empty()) left += fmt::format(" {}", option.value_name);
  std::string right(option.help);
  if (!option.choices.empty()) right += fmt::format(" [{}]", fmt::join(option.choices, "|"));
  if (!option.default_text.empty() && option.default_text.front() != '(')
    right += fmt::format(" (default {})", option.default_text);
  else if (!option.default_text.empty())
    right += fmt::format(" {}", option.default_text);
  if (!option.environment.empty()) right += fmt::format(" [env {}]", option.environment);
  return row(left, right);
}

std::string program_help() {
  std::string out = "usage: vedette SUBCOMMAND [OPTIONS]\n\n";
  for (const SubcommandSpec& subcommand : subcommand_table()) {
    if (subcommand.state == OptionState::kActive)
      out += row(fmt::format("  {} {}", subcommand.name, subcommand.operand), subcommand.summary);
  }
  return out + "\n`vedette help SUBCOMMAND` lists its options; docs/flags.md lists all.\n";
}

}  // namespace

std::string help_text(std::string_view name) {
  const SubcommandSpec* subcommand = find_subcommand(name);
  if (subcommand == nullptr) return program_help();
  std::string out = fmt::format("usage: vedette {}{}{} [OPTIONS]\n{}\n", subcommand->name,
                                subcommand->operand.empty() ? "" : " ", subcommand->operand, subcommand->summary);
  std::string_view group;
  size_t unavailable = 0;
  for (const OptionSpec* option : options_of(subcommand->name)) {
    if (option->state != OptionState::kActive) {
      ++unavailable;
      continue;
    }
    if (option->group != group) out += fmt::format("\n{}:\n", option->group);
    group = option->group;
    out += option_row(*option);
  }
  if (unavailable > 0) {
    out += fmt::format(
        "\n{} options known elsewhere are refused with a reason, or have no effect here: see docs/flags.md\n",
        unavailable);
  }
  return out;
}

Result<int> run_help(Context& context) {
  const bool markdown = context.options.flag("--markdown"), completion = context.options.flag("--completion-bash");
  VEDETTE_RETURN_IF_ERROR(start(context));
  if (completion) {
    VEDETTE_RETURN_IF_ERROR(print(options_completion_bash()));
    return kExitDone;
  }
  const std::string name = context.operands.empty() ? "" : context.operands.front();
  const SubcommandSpec* subcommand = find_subcommand(name);
  if (!name.empty() && subcommand == nullptr)
    return invalid_request("--help", "help: there is no subcommand '{}'; `vedette help` lists them",
                           name.substr(0, 60));
  if (subcommand != nullptr && subcommand->state != OptionState::kActive)
    return unsupported("", "{}: {}", subcommand->name, subcommand->note);
  VEDETTE_RETURN_IF_ERROR(print(markdown ? options_markdown() : help_text(name)));
  return kExitDone;
}

Result<int> run_version(Context& context) {
  VEDETTE_RETURN_IF_ERROR(start(context));
  VEDETTE_RETURN_IF_ERROR(print(fmt::format("vedette {}\n", kVersion)));
  return kExitDone;
}

}  // namespace vedette::cli
