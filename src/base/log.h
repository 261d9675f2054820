// Log lines to standard error. Wraps spdlog, whose headers stay in log.cpp. Any thread.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace vedette::log {

enum class Level { kDebug, kInfo, kWarning, kError };
void set_level(Level level);  // default kWarning
// Lines go to the end of this file, with the time, in place of standard error; set once, before other threads log.
Status set_file(const std::string& path);
void write(Level level, std::string_view line);

template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace vedette::log
