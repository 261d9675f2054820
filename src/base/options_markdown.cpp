// docs/flags.md from the option tables.
#include <fmt/format.h>

#include "base/options.h"

namespace vedette {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string spellings(const OptionSpec& option) {
  std::string out = fmt::format("`{}{}{}`", option.name, option.value_name.empty() ? "" : " ", option.value_name);
  for (std::string_view alias : option.aliases) out += fmt::format(", `{}`", alias);
  return escaped(out);
}

std::string values(const OptionSpec& option) {
  std::string out;
  if (!option.choices.empty())
    out = fmt::format("{}", fmt::join(option.choices, ", "));
  else if (option.min != option.max)
    out = fmt::format("{} to {}", option.min, option.max);
  return out;
}

std::string meaning(const OptionSpec& option) {
  std::string out = escaped(option.help);
  if (!option.refused_choices.empty())
    out += fmt::format(". Refused by name: {} ({})", fmt::join(option.refused_choices, ", "), escaped(option.note));
  return out;
}

std::string active_rows(std::string_view group) {
  std::string rows;
  for (const OptionSpec& option : option_table()) {
    if (option.state != OptionState::kActive || option.group != group) continue;
    rows += fmt::format("| {} | {} | {} | {} | {} | {} |\n", spellings(option),
                        option.environment.empty() ? "" : fmt::format("`{}`", option.environment), values(option),
                        escaped(option.default_text), fmt::join(option.subcommands, ", "), meaning(option));
  }
  return rows;
}

std::string unavailable_rows(OptionState state) {
  std::string rows;
  for (const OptionSpec& option : option_table()) {
    if (option.state != state) continue;
    rows += fmt::format("| {} | {} | {} | {} |\n", spellings(option), escaped(option.default_text),
                        fmt::join(option.subcommands, ", "), escaped(option.note));
  }
  return rows;
}

}  // namespace

std::string options_markdown() {
  std::string out =
      "# Command line reference\n\n"
      "Written by `vedette help --markdown` from the tables in `src/base/option_table*.cpp`; do not edit by hand.\n"
      "The command line wins over the environment. Exit codes: 0 done, 1 an error, 2 wrong usage.\n\n"
      "## Subcommands\n\n| subcommand | operand | does |\n|---|---|---|\n";
  for (const SubcommandSpec& subcommand : subcommand_table()) {
    if (subcommand.state != OptionState::kActive) continue;
    std::string names = fmt::format("`{}`", subcommand.name);
    for (std::string_view alias : subcommand.aliases) names += fmt::format(", `{}`", alias);
    out += fmt::format("| {} | {} | {} |\n", names, subcommand.operand, subcommand.summary);
  }
  std::string_view group;
  for (const OptionSpec& option : option_table()) {
    if (option.state != OptionState::kActive || option.group == group) continue;
    group = option.group;
    out += fmt::format(
        "\n## {}\n\n| option | environment | values | default | for | meaning |\n|---|---|---|---|---|---|\n", group);
    out += active_rows(group);
  }
  out +=
      "\n## Known elsewhere, refused here\n\nEach is an error with this reason. The value in the second column is what "
      "happens anyway, and is accepted.\n\n| option | accepted | for | reason |\n|---|---|---|---|\n";
  out += unavailable_rows(OptionState::kRefused);
  out +=
      "\n## Known elsewhere, without effect here\n\nEach is accepted, with one line on standard error.\n\n"
      "| option | default | for | reason |\n|---|---|---|---|\n";
  out += unavailable_rows(OptionState::kInert);
  out += "\n## Subcommands known elsewhere\n\n| subcommand | in its place |\n|---|---|\n";
  for (const SubcommandSpec& subcommand : subcommand_table()) {
    if (subcommand.state == OptionState::kActive) continue;
    out += fmt::format("| `{}` | {} |\n", subcommand.name, escaped(subcommand.note));
  }
  return out;
}

}  // namespace vedette
