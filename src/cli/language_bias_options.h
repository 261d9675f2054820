// --lang-bias and what goes with it.
#pragma once

#include <string_view>

#include "base/options.h"
#include "base/result.h"
#include "text/language_bias.h"

namespace vedette::cli {

// The command line over the file of --lang-bias-config.
Result<text::LanguageBias> read_language_bias_options(const OptionValues& options);
// Lines "LANGUAGE: BIAS", "policy: conservative|strict", "include_special: true|false" (also _numeric, _punctuation,
// _byte_fragments), blank lines and comments after '#': the part of YAML that this takes. Errors name the line.
Result<text::LanguageBias> parse_language_bias_file(std::string_view content);

}  // namespace vedette::cli
