// What this machine is: processor, memory, instruction sets. Facts from the kernel, nothing measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace vedette::server {

struct Machine {
  std::string platform, machine, os_version;  // "linux", "x86_64", the kernel's release
  std::string cpu;                            // the processor's name
  std::vector<std::string> isas;              // what the kernels can use, slowest first
  int processors = 0;                         // this process may run on
  int default_threads = 0;                    // physical cores, affinity and quota respected
  std::optional<int64_t> memory_bytes, available_bytes;
  std::optional<int64_t> swap_used_bytes;
  std::string huge_pages;  // "always", "madvise", "never"; "": unknown
};

Machine look_at_machine();
Json to_json(const Machine& machine);

}  // namespace vedette::server
