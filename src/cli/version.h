// The program's version, set by the build.
#pragma once

#include <string_view>

namespace vedette::cli {

inline constexpr std::string_view kVersion = VEDETTE_VERSION;

}  // namespace vedette::cli
