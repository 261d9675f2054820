// Which instruction sets this machine has, and the choice among them.
#include "base/error.h"
#include "ops/cpu/cpu_backend.h"

namespace vedette::ops::cpu {

const char* to_string(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas = {Isa::kPortable};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (avx2) isas.push_back(Isa::kAvx2);
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    isas.push_back(Isa::kAvx512);
#endif
  return isas;
}

Result<Isa> choose_isa(const std::string& name) {
  const std::vector<Isa> available = available_isas();
  if (name.empty()) return available.back();
  std::string list;
  for (Isa isa : available) {
    if (name == to_string(isa)) return isa;
    list += list.empty() ? to_string(isa) : std::string(", ") + to_string(isa);
  }
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (name == to_string(isa))
      return unsupported("VEDETTE_CPU_ISA", "instruction set '{}' is not available on this machine; use one of: {}",
                         name, list);
  }
  return invalid_request("VEDETTE_CPU_ISA", "unknown instruction set '{}'; use one of: {}", name, list);
}

}  // namespace vedette::ops::cpu
