#include "server/housekeeping.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include "base/log.h"

namespace vedette::server {
namespace {

constexpr int64_t kCheckEveryMs = 2'000;
constexpr double kHighPressure = 20;  // percent

std::string pressure_text() {
  std::ifstream file("/proc/pressure/memory");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::optional<double> memory_pressure(std::string_view text) {
  constexpr std::string_view kKey = "some avg10=";
  const size_t at = text.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  double value = 0;
  const char* begin = text.data() + at + kKey.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional<double>(value) : std::nullopt;
}

void Housekeeping::tick(int64_t now_ms) {
  if (now_ms < next_check_ms_) return;
  next_check_ms_ = now_ms + kCheckEveryMs;
  if (settings_.memory_guard && memory_pressure(pressure_text()).value_or(0) > kHighPressure) {
    if (const auto model = core_.models.current(); model.ok()) {
      (*model)->engine->reset_prefix_cache();
      log::warning("memory is short: the prefix cache was emptied (--no-memory-guard leaves it)");
    }
  }
  if (settings_.sleep_after_ms < 0) return;
  const int64_t last = core_.counters.last_request_ms;
  if (last > 0 && now_ms - last > settings_.sleep_after_ms) core_.models.sleep();  // not while jobs hold the model
}

}  // namespace vedette::server
