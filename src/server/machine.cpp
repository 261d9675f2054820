#include "server/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <charconv>
#include <fstream>
#include <string_view>

#include "engine/memory.h"
#include "ops/cpu/cpu_backend.h"

namespace vedette::server {
namespace {

std::string_view after_colon(std::string_view line) {
  line.remove_prefix(std::min(line.find(':') + 1, line.size()));
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return std::string(after_colon(line));
  }
  return "";
}

// Bytes of a line "Name:   123 kB" of /proc/meminfo.
std::optional<int64_t> meminfo(std::string_view name) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const std::string_view digits = after_colon(line);
    int64_t kilobytes = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), kilobytes).ec == std::errc())
      return kilobytes * 1024;
  }
  return std::nullopt;
}

// The choice in brackets: "always [madvise] never".
std::string huge_page_mode() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(in, line);
  const size_t open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return line.substr(open + 1, close - open - 1);
}

int processor_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

Machine look_at_machine() {
  Machine out;
  out.platform = "linux";
  if (utsname names{}; uname(&names) == 0) {
    out.machine = names.machine;
    out.os_version = names.release;
  }
  out.cpu = cpu_name();
  for (const ops::cpu::Isa isa : ops::cpu::available_isas()) out.isas.emplace_back(ops::cpu::to_string(isa));
  out.processors = processor_count();
  out.default_threads = ops::cpu::default_thread_count();
  out.memory_bytes = meminfo("MemTotal:");
  if (auto available = engine::available_memory(); available.ok()) out.available_bytes = *available;
  const auto swap = meminfo("SwapTotal:"), free_swap = meminfo("SwapFree:");
  if (swap && free_swap) out.swap_used_bytes = *swap - *free_swap;
  out.huge_pages = huge_page_mode();
  return out;
}

Json to_json(const Machine& machine) {
  Json isas = Json::array();
  for (const std::string& isa : machine.isas) isas.push_back(isa);
  Json memory = Json::object();
  memory.set("total_bytes", or_null(machine.memory_bytes));
  memory.set("available_bytes", or_null(machine.available_bytes));
  memory.set("swap_used_bytes", or_null(machine.swap_used_bytes));
  Json out = Json::object();
  out.set("platform", machine.platform);
  out.set("machine", machine.machine);
  out.set("os_version", machine.os_version);
  out.set("cpu", machine.cpu.empty() ? Json() : Json(machine.cpu));
  out.set("isa", machine.isas.empty() ? Json() : Json(machine.isas.back()));
  out.set("isas", std::move(isas));
  out.set("processors", machine.processors);
  out.set("default_threads", machine.default_threads);
  out.set("memory", std::move(memory));
  out.set("huge_pages", machine.huge_pages.empty() ? Json() : Json(machine.huge_pages));
  return out;
}

}  // namespace vedette::server
