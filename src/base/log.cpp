#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette::log {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("vedette", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%l%$: %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(to_spdlog(level));
}

Status set_file(const std::string& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    logger().sinks() = {std::move(sink)};
    logger().set_pattern("%Y-%m-%dT%H:%M:%S%z %l: %v");
    logger().flush_on(spdlog::level::debug);
  } catch (const spdlog::spdlog_ex& error) {
    return unavailable("--log-file", "--log-file: {}: cannot be written: {}", path, error.what());
  }
  return ok_status();
}

void write(Level level, std::string_view line) {
  try {
    logger().log(to_spdlog(level), "{}", without_controls(line, LineBreaks::kSpaces));
  } catch (...) {  // a log line that cannot be written must not end a request
  }
}

}  // namespace vedette::log
