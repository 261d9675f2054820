// How many threads this process should use: physical cores of its affinity mask, lowered by the cgroup's CPU quota.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vedette::ops::cpu {

// Distinct cores among `cpus`, by <root>/sys/devices/system/cpu/cpu<n>/topology; a CPU without it counts as a core.
int count_cores(std::span<const int> cpus, const std::string& root);

// CPUs that the quota of the process's cgroup and of those above it allows (versions 1 and 2); none: no quota.
std::optional<double> cgroup_cpu_quota(const std::string& root);

}  // namespace vedette::ops::cpu
