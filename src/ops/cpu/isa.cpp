// Which instruction sets this machine has, and the choice among them.
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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
    case Isa::kAmx:
      return "amx";
    case Isa::kNeon:
      return "neon";
  }
  return "?";
}

#if defined(__x86_64__)
namespace {

// AMX with int8 tiles, for which Linux must be asked to keep a process's tiles (arch_prctl(2), since 5.16). Asking
// again is harmless.
bool has_amx() {
  constexpr unsigned kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxTile) == 0 || (d & kAmxInt8) == 0) return false;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace
#endif

std::vector<Isa> available_isas() {
  std::vector<Isa> isas = {Isa::kPortable};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (avx2) isas.push_back(Isa::kAvx2);
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    isas.push_back(Isa::kAvx512);
  if (isas.back() == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni") && has_amx()) isas.push_back(Isa::kAmx);
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) isas.push_back(Isa::kNeon);
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
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAmx, Isa::kNeon}) {
    if (name == to_string(isa))
      return unsupported("VEDETTE_CPU_ISA", "instruction set '{}' is not available on this machine; use one of: {}",
                         name, list);
  }
  return invalid_request("VEDETTE_CPU_ISA", "unknown instruction set '{}'; use one of: {}", name, list);
}

}  // namespace vedette::ops::cpu
