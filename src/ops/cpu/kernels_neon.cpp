// The NEON instance of the CPU kernels (kernels.h). Every 64-bit Arm processor can run it.
#include "ops/cpu/kernels.h"
#include "ops/cpu/lanes_neon.h"

#define VEDETTE_ISA neon
#include "ops/cpu/kernels-inl.h"

namespace vedette::ops::cpu {

const Kernels& kernels_neon() {
  return neon::kKernels;
}

}  // namespace vedette::ops::cpu
