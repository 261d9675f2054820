#include "cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette::cli {
namespace {

constexpr std::string_view kSource = "command line";

// "-np": CLI11 knows short names of one letter alone.
bool is_long_short_name(std::string_view spelling) {
  return spelling.size() > 2 && spelling[0] == '-' && spelling[1] != '-';
}

std::string spellings(const OptionSpec& option) {
  std::string names(option.name);
  for (std::string_view alias : option.aliases)
    if (!is_long_short_name(alias)) names += fmt::format(",{}", alias);
  return names;
}

// Short names of several letters become the option's own name.
void replace_long_short_names(std::string_view subcommand, std::vector<std::string>& arguments) {
  const auto options = options_of(subcommand);
  for (std::string& argument : arguments) {
    if (argument == "--") return;
    if (!is_long_short_name(argument)) continue;
    for (const OptionSpec* option : options)
      if (std::ranges::find(option->aliases, std::string_view(argument)) != option->aliases.end())
        argument = option->name;
  }
}

void add_option(CLI::App& app, const OptionSpec& option, std::map<const OptionSpec*, CLI::Option*>& added) {
  CLI::Option* entry =
      option.type == OptionType::kFlag ? app.add_flag(spellings(option)) : app.add_option(spellings(option));
  entry->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (option.type != OptionType::kFlag) entry->allow_extra_args(false);
  added[&option] = entry;
}

Error unknown_word(const SubcommandSpec& subcommand, const std::string& word, bool after_mark = false) {
  const std::string spelling = word.substr(0, word.find('='));
  if (!spelling.starts_with('-') || after_mark) {
    return invalid_request("", "vedette {}: unexpected word '{}'{}", subcommand.name,
                           repair_utf8(spelling.substr(0, 60)),
                           subcommand.operand.empty() ? "; it takes options only" : "");
  }
  const std::string hint = subcommand.takes_rest ? "; what the program started shall get stands after --" : "";
  if (const OptionSpec* known = find_option(spelling)) {
    return invalid_request(spelling, "{} does not belong to `vedette {}`; it is for: {}{}", spelling, subcommand.name,
                           fmt::join(known->subcommands, ", "), hint);
  }
  const std::string near = nearest_option(subcommand.name, spelling);
  return invalid_request(spelling, "unknown option '{}'{}{}; `vedette help {}` lists the options",
                         repair_utf8(spelling.substr(0, 60)),
                         near.empty() ? "" : fmt::format(", did you mean {}?", near), hint, subcommand.name);
}

Error from_parse_error(const SubcommandSpec& subcommand, const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string name = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return invalid_request(name, "{} ({}): expected a value, found none", name, kSource);
  return invalid_request("", "{}; `vedette help {}` lists the options", text, subcommand.name);
}

// Words without an option: a subcommand with a single operand takes it as the value of the option named in the table.
Status take_operands(const SubcommandSpec& subcommand, const std::vector<std::string>& words, Context& context) {
  const auto mark = std::ranges::find(words, "--");  // what follows it is no option
  for (auto word = words.begin(); word != mark; ++word) {
    if (word->size() > 1 && word->starts_with('-')) return unknown_word(subcommand, *word);
  }
  for (auto at = words.begin(); at != words.end(); ++at) {
    const std::string& word = *at;
    if (at == mark) continue;
    if (!context.operands.empty())
      return invalid_request("", "unexpected word '{}': `vedette {}` takes one {} and has '{}' already",
                             repair_utf8(word.substr(0, 60)), subcommand.name, subcommand.operand,
                             repair_utf8(context.operands.front().substr(0, 60)));
    if (subcommand.operand.empty()) return unknown_word(subcommand, word, at > mark);
    context.operands.push_back(word);
  }
  if (subcommand.operand_option.empty() || context.operands.empty()) return ok_status();
  if (context.options.given(subcommand.operand_option)) {
    return invalid_request(std::string(subcommand.operand_option), "{} was given twice: as '{}' and by its option",
                           subcommand.operand, repair_utf8(context.operands.front()));
  }
  VEDETTE_RETURN_IF_ERROR(context.options.set(subcommand.operand_option, context.operands.front(), kSource));
  context.operands.clear();
  return ok_status();
}

}  // namespace

Result<ParsedLine> parse_line(const SubcommandSpec& subcommand, std::vector<std::string> arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  CLI::Option* help = app.add_flag("-h,--help");
  help->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  std::map<const OptionSpec*, CLI::Option*> added;
  for (const OptionSpec* option : options_of(subcommand.name)) add_option(app, *option, added);
  replace_long_short_names(subcommand.name, arguments);
  std::vector<std::string> rest;
  if (const auto mark = std::ranges::find(arguments, "--"); subcommand.takes_rest && mark != arguments.end()) {
    rest.assign(mark + 1, arguments.end());
    arguments.erase(mark, arguments.end());
  }
  std::ranges::reverse(arguments);
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return from_parse_error(subcommand, error);
  }
  ParsedLine line;
  line.context.subcommand = subcommand.name;
  line.help = help->count() > 0;
  if (line.help) return line;
  for (const OptionSpec* option : options_of(subcommand.name)) {
    for (const std::string& value : added[option]->results())
      VEDETTE_RETURN_IF_ERROR(line.context.options.set(option->name, value, kSource));
  }
  if (subcommand.takes_rest && !app.remaining().empty()) return unknown_word(subcommand, app.remaining().front());
  VEDETTE_RETURN_IF_ERROR(take_operands(subcommand, app.remaining(), line.context));
  if (subcommand.takes_rest) line.context.operands = std::move(rest);
  VEDETTE_RETURN_IF_ERROR(line.context.options.apply_environment(subcommand.name));
  return line;
}

}  // namespace vedette::cli
