// The options of `serve`, and of the subcommands that talk to a running server. Part of the table of base/options.h.
#pragma once

#include <vector>

#include "base/options.h"

namespace vedette {

std::vector<OptionSpec> server_options();
// What other servers know and this one does not have: refused by name, or without effect.
std::vector<OptionSpec> unavailable_server_options();

}  // namespace vedette
