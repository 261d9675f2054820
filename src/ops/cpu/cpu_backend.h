// The CPU back end: kernels per instruction set, chosen at run time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/backend.h"

namespace vedette::ops::cpu {

// kNeon includes the dot product of bytes.
enum class Isa : uint8_t { kPortable, kAvx2, kAvx512, kAmx, kNeon };
const char* to_string(Isa isa);
// What this machine can run, slowest first; kPortable is always there.
std::vector<Isa> available_isas();
// "portable" | "avx2" | "avx512" | "amx" | "neon"; unknown or unavailable names are errors that list what is available.
// Empty: the best available.
Result<Isa> choose_isa(const std::string& name);

class Pool;

struct CpuConfig {
  Compute compute = Compute::kI16;
  Isa isa = Isa::kPortable;
  int threads = 1;     // worker threads, the caller's included
  bool repack = true;  // false: run on the stored layout in place (slower, nothing copied)
  // The process's pool, whose threads then count; a pool of the back end's own where null.
  std::shared_ptr<Pool> pool;
};

// Physical cores this process may use (affinity and cgroup quota respected), at least 1.
int default_thread_count();

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuConfig& config);

}  // namespace vedette::ops::cpu
