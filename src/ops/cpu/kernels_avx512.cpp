// The avx512 instance of the CPU kernels (kernels.h).
#include "ops/cpu/kernels.h"
#include "ops/cpu/lanes_avx512.h"

#define VEDETTE_ISA avx512
#include "ops/cpu/kernels-inl.h"

namespace vedette::ops::cpu {

const Kernels& kernels_avx512() {
  return avx512::kKernels;
}

}  // namespace vedette::ops::cpu
