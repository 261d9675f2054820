// The options of the sampling chain, for every subcommand that generates. Part of the table of base/options.h.
#pragma once

#include <vector>

#include "base/options.h"

namespace vedette {

std::vector<OptionSpec> sampling_options();

}  // namespace vedette
