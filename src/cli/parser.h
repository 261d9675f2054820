// The command line as option values. Wraps CLI11, whose header stays in parser.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "base/result.h"
#include "cli/context.h"

namespace vedette::cli {

struct ParsedLine {
  Context context;
  bool help = false;
};

// Arguments after the subcommand's name. Every error is wrong usage: an unknown option (with the nearest known one),
// a missing or bad value, a refused option, a word too many.
Result<ParsedLine> parse_line(const SubcommandSpec& subcommand, std::vector<std::string> arguments);

}  // namespace vedette::cli
