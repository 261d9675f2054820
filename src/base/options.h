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
  kRefused,  // known elsewhere, not available here: start-up error with `note`
  kInert,    // accepted, means nothing here: one line with `note`
};

struct OptionSpec {
  std::string_view name;                          // "--prefill-chunk-size"
  std::vector<std::string_view> aliases;          // further spellings, e.g. "-n", "--max-tokens"
  std::string_view environment;                   // "" if none
  OptionType type = OptionType::kFlag;
  double min = 0, max = 0;                        // range of numbers; min == max: no limit
  std::vector<std::string_view> choices;
  std::string_view default_text;                  // as shown in help
  std::string_view group;                         // heading in help
  std::vector<std::string_view> subcommands;
  std::string_view help;
  bool repeatable = false;
  OptionState state = OptionState::kActive;
  std::string_view note;
};

// The whole table, in help order.
std::span<const OptionSpec> option_table();
const OptionSpec* find_option(std::string_view name_or_alias);

// Values of one run, by option name, validated against the table. Reading marks an option as used.
class OptionValues {
 public:
  // source: "command line" or the variable's name, for messages.
  // Errors (kInvalidRequest): unknown option, wrong type, out of range, a refused option.
  Status set(std::string_view name, std::string_view value, std::string_view source);
  // Applies environment variables of the subcommand's options that the command line left unset.
  Status apply_environment(std::string_view subcommand);

  bool given(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

  // Errors if an option was set and never read.
  Status check_all_read() const;
  const std::vector<std::string>& notices() const { return notices_; }  // lines about inert options

 private:
  struct Value {
    std::vector<std::string> texts;
    std::string source;
  };
  std::map<std::string, Value, std::less<>> values_;
  mutable std::set<std::string, std::less<>> read_;
  std::vector<std::string> notices_;
};

}  // namespace vedette
