// Text from a file, made fit for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace vedette::weights {

// At most 120 bytes, valid UTF-8, control characters as '?'.
std::string shown(std::string_view text);

// Whether a name has characters that no tensor's name has.
bool has_control_characters(std::string_view text);

}  // namespace vedette::weights
