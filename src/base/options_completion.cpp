// The completion script for bash from the option tables.
#include <fmt/format.h>

#include "base/options.h"

namespace vedette {
namespace {

// Words that may follow a subcommand; what is refused is not offered.
std::string option_words(std::string_view subcommand) {
  std::string out;
  for (const OptionSpec* option : options_of(subcommand)) {
    if (option->state == OptionState::kActive) out += fmt::format("{}{}", out.empty() ? "" : " ", option->name);
  }
  return out;
}

}  // namespace

std::string options_completion_bash() {
  std::string names, cases, values;
  for (const SubcommandSpec& subcommand : subcommand_table()) {
    if (subcommand.state != OptionState::kActive) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " ", subcommand.name);
    cases += fmt::format("    {}) words=\"{}\" ;;\n", subcommand.name, option_words(subcommand.name));
  }
  for (const OptionSpec& option : option_table()) {
    if (option.state != OptionState::kActive || option.choices.empty()) continue;
    values += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n", option.name,
                          fmt::join(option.choices, " "));
  }
  return fmt::format(R"(_vedette() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} subcommand=${{COMP_WORDS[1]}} words=
  [[ ${{COMP_WORDS[0]##*/}} == vedette-server ]] && subcommand=serve
  if [[ $COMP_CWORD == 1 && $subcommand != serve ]]; then
    COMPREPLY=($(compgen -W "{}" -- "$word"))
    return
  fi
  case $before in
{}  esac
  case $subcommand in
{}  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -F _vedette vedette vedette-server
)",
                     names, values, cases);
}

}  // namespace vedette
