// The portable instance of the CPU kernels (kernels.h).
#include "ops/cpu/kernels.h"
#include "ops/cpu/lanes_portable.h"

#define VEDETTE_ISA portable
#include "ops/cpu/kernels-inl.h"

namespace vedette::ops::cpu {

const Kernels& kernels_portable() {
  return portable::kKernels;
}

}  // namespace vedette::ops::cpu
