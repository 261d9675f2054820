#include "ops/cpu/kernels.h"

namespace vedette::ops::cpu {

const Kernels& kernels_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512 || isa == Isa::kAmx) return kernels_avx512();
  if (isa == Isa::kAvx2) return kernels_avx2();
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return kernels_neon();
#else
  static_cast<void>(isa);
#endif
  return kernels_portable();
}

}  // namespace vedette::ops::cpu
