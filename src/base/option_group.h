// Builds entries of the option table that share a heading, subcommands and, where they are not active, a reason.
#pragma once

#include <string_view>
#include <vector>

#include "base/options.h"
#include "base/sampling_ranges.h"

namespace vedette {

class OptionGroup {
 public:
  using Names = std::vector<std::string_view>;

  OptionGroup(std::vector<OptionSpec>& out, OptionState state, std::string_view heading, std::string_view note,
              Names subcommands)
      : out_(out), state_(state), heading_(heading), note_(note), subcommands_(std::move(subcommands)) {}

  // names: the name, then aliases. default_text: of active options the default; of refused ones the neutral value that
  // is accepted, or "".
  OptionGroup& add(Names names, OptionType type, std::string_view help, std::string_view default_text = {},
                   std::string_view environment = {}) {
    OptionSpec option;
    option.name = names.front();
    option.aliases.assign(names.begin() + 1, names.end());
    option.environment = environment;
    option.type = type;
    option.value_name = type == OptionType::kFlag      ? ""
                        : type == OptionType::kInteger ? "N"
                        : type == OptionType::kNumber  ? "X"
                        : type == OptionType::kPath    ? "PATH"
                                                       : "TEXT";
    option.default_text = default_text;
    option.group = heading_;
    option.subcommands = subcommands_;
    option.help = help;
    option.repeatable = state_ != OptionState::kActive;
    option.state = state_;
    option.note = note_;
    out_.push_back(option);
    return *this;
  }
  // Of the entry added last.
  OptionGroup& range(double min, double max) {
    out_.back().min = min;
    out_.back().max = max;
    return *this;
  }
  OptionGroup& range(NumberRange range) { return this->range(range.min, range.max); }
  OptionGroup& choices(Names words) {
    out_.back().type = OptionType::kChoice;
    out_.back().choices = std::move(words);
    return *this;
  }
  OptionGroup& repeatable() {
    out_.back().repeatable = true;
    return *this;
  }

 private:
  std::vector<OptionSpec>& out_;
  OptionState state_;
  std::string_view heading_, note_;
  Names subcommands_;
};

}  // namespace vedette
