// The avx2 instance of the CPU kernels (kernels.h).
#include "ops/cpu/kernels.h"
#include "ops/cpu/lanes_avx2.h"

#define VEDETTE_ISA avx2
#include "ops/cpu/kernels-inl.h"

namespace vedette::ops::cpu {

const Kernels& kernels_avx2() {
  return avx2::kKernels;
}

}  // namespace vedette::ops::cpu
