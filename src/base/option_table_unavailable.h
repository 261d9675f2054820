// What other servers' command lines know and this build does not have: accepted by name, refused or inert with a
// reason. Part of the table of base/options.h.
#pragma once

#include <vector>

#include "base/options.h"

namespace vedette {

std::vector<OptionSpec> unavailable_options();
std::vector<SubcommandSpec> unavailable_subcommands();

}  // namespace vedette
