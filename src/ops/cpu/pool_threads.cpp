#include "ops/cpu/pool_threads.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "ops/cpu/cpu_backend.h"

namespace vedette::ops::cpu {
namespace {

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<double> read_number(const std::string& path) {
  const auto line = read_line(path);
  if (!line) return std::nullopt;
  std::istringstream in(*line);
  double value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

// "max 100000" or "150000 100000".
std::optional<double> quota_v2(const std::string& folder) {
  const auto line = read_line(folder + "/cpu.max");
  if (!line) return std::nullopt;
  std::istringstream in(*line);
  double quota = 0, period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> quota_v1(const std::string& folder) {
  const auto quota = read_number(folder + "/cpu.cfs_quota_us");
  const auto period = read_number(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// The smallest quota of mount/path and the folders above it, down to the mount itself: inside a container the path
// may be the host's and only the mount exists.
template <typename Read>
void lower_by(const std::string& mount, std::string path, Read read, std::optional<double>& lowest) {
  for (;;) {
    if (const auto quota = read(mount + path)) lowest = std::min(lowest.value_or(*quota), *quota);
    if (path.empty() || path == "/") return;
    path.resize(path.rfind('/'));
  }
}

bool names_cpu(const std::string& controllers) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

int count_cores(std::span<const int> cpus, const std::string& root) {
  std::set<std::pair<double, double>> cores;
  int unknown = 0;
  for (const int cpu : cpus) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const auto package = read_number(folder + "physical_package_id");
    const auto core = read_number(folder + "core_id");
    if (package && core) {
      cores.emplace(*package, *core);
    } else {
      ++unknown;
    }
  }
  return static_cast<int>(cores.size()) + unknown;
}

std::optional<double> cgroup_cpu_quota(const std::string& root) {
  std::optional<double> lowest;
  std::ifstream file(root + "/proc/self/cgroup");
  // Lines are hierarchy:controllers:path; version 2 has an empty list of controllers.
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    const std::string base = root + "/sys/fs/cgroup";
    if (controllers.empty()) {
      lower_by(base, path, quota_v2, lowest);
      lower_by(base + "/unified", path, quota_v2, lowest);
    } else if (names_cpu(controllers)) {
      lower_by(base + "/cpu", path, quota_v1, lowest);
      lower_by(base + "/cpu,cpuacct", path, quota_v1, lowest);
    }
  }
  return lowest;
}

int default_thread_count() {
  std::vector<int> cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
    }
  }
  int count = std::max(1, count_cores(cpus, ""));
  if (const auto quota = cgroup_cpu_quota("")) count = std::min(count, std::max(1, static_cast<int>(*quota)));
  return count;
}

}  // namespace vedette::ops::cpu
