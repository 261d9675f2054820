// The one options table (docs/architecture.md, "Options"). Command line, environment, shell completion and
// docs/flags.md are generated from it; an option that was set and never read fails start-up.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vedette {

enum class OptionType : uint8_t { kFlag, kInteger, kNumber, kText, kPath, kChoice };
enum class OptionState : uint8_t {
  kActive,
  kRefused,  // known elsewhere, not available here: start-up error with `note`, unless given its neutral default
  kInert,    // accepted, means nothing here: one line with `note`
};

struct OptionSpec {
  std::string_view name;                       // "--prefill-chunk-size"
  std::vector<std::string_view> aliases = {};  // further spellings, e.g. "-n", "--max-tokens"
  std::string_view environment = {};           // "" if none
  OptionType type = OptionType::kFlag;
  std::string_view value_name = {};                    // as shown in help: "N", "PATH"; "" for flags
  double min = 0, max = 0;                             // range of numbers; min == max: no limit
  std::vector<std::string_view> choices = {};          // kChoice
  std::vector<std::string_view> refused_choices = {};  // known elsewhere, refused here with `note`
  std::string_view default_text = {};  // the default itself, or a remark in parentheses: "(from the model)"
  std::string_view group = {};         // heading in help
  std::vector<std::string_view> subcommands = {};
  std::string_view help = {};
  bool repeatable = false;
  OptionState state = OptionState::kActive;
  std::string_view note = {};
};

struct SubcommandSpec {
  std::string_view name;
  std::vector<std::string_view> aliases = {};
  std::string_view summary = {};
  std::string_view operand = {};             // "[MODEL]"; "" if it takes none
  bool takes_rest = false;                   // every word after "--" is an operand
  std::string_view operand_option = {};      // the option an operand is a value of, "" if the subcommand reads it
  OptionState state = OptionState::kActive;  // kRefused: `note` says what to use in its place
  std::string_view note = {};
};

// The whole table, in help order.
std::span<const OptionSpec> option_table();
const OptionSpec* find_option(std::string_view name_or_alias);
std::vector<const OptionSpec*> options_of(std::string_view subcommand);
// The known spelling nearest to a mistyped one, or "" if none is near.
std::string nearest_option(std::string_view subcommand, std::string_view spelling);

std::span<const SubcommandSpec> subcommand_table();
const SubcommandSpec* find_subcommand(std::string_view name_or_alias);
std::string nearest_subcommand(std::string_view spelling);

// docs/flags.md: every subcommand and option, from the two tables.
std::string options_markdown();

// A script that completes subcommands and options in bash, to be sourced.
std::string options_completion_bash();

// Values of one run, by option name, validated against the table. Reading marks an option as used.
class OptionValues {
 public:
  // source: "command line" or the variable's name, for messages.
  // Errors (kInvalidRequest): unknown option, wrong type, out of range, a refused option.
  Status set(std::string_view name, std::string_view value, std::string_view source);
  // Applies environment variables of the subcommand's options that the command line left unset.
  Status apply_environment(std::string_view subcommand);

  // Reading an option that was not set gives its default, or nothing where the default is a remark.
  bool given(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  // Where a set option comes from, for messages: "command line" or a variable's name; "default" if it was not set.
  std::string_view source(std::string_view name) const;

  // Errors if an option was set and never read.
  Status check_all_read() const;
  const std::vector<std::string>& notices() const { return notices_; }  // lines about inert options

 private:
  struct Value {
    std::vector<std::string> texts;
    std::string source;
  };
  const std::vector<std::string>* find(std::string_view name) const;
  std::map<std::string, Value, std::less<>> values_;
  mutable std::set<std::string, std::less<>> read_;
  std::vector<std::string> notices_;
};

}  // namespace vedette
