// Which kernels run here: the instruction sets of the machine, AVX-512 with and without VNNI told apart.
#include <vector>

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

std::vector<KernelVariant> find_variants() {
  std::vector<KernelVariant> variants;
  for (Isa isa : available_isas()) {
    switch (isa) {
      case Isa::kPortable:
        variants.push_back(KernelVariant::kPortable);
        break;
      case Isa::kAvx2:
        variants.push_back(KernelVariant::kAvx2);
        break;
      case Isa::kAvx512:
        variants.push_back(KernelVariant::kAvx512);
        break;
    }
  }
#if defined(__x86_64__)
  if (variants.back() == KernelVariant::kAvx512 && __builtin_cpu_supports("avx512vnni"))
    variants.push_back(KernelVariant::kAvx512Vnni);
#endif
  return variants;
}

}  // namespace

const char* to_string(KernelVariant variant) {
  switch (variant) {
    case KernelVariant::kPortable:
      return "portable";
    case KernelVariant::kAvx2:
      return "avx2";
    case KernelVariant::kAvx512:
      return "avx512";
    case KernelVariant::kAvx512Vnni:
      return "avx512+vnni";
  }
  return "?";
}

std::span<const KernelVariant> available_variants() {
  static const std::vector<KernelVariant> variants = find_variants();
  return variants;
}

KernelVariant variant_of(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return KernelVariant::kPortable;
    case Isa::kAvx2:
      return KernelVariant::kAvx2;
    case Isa::kAvx512:
      break;
  }
  const KernelVariant best = available_variants().back();
  return best == KernelVariant::kAvx512Vnni ? best : KernelVariant::kAvx512;
}

const Kernels& kernels_of(KernelVariant variant) {
  switch (variant) {
    case KernelVariant::kPortable:
      return kPortableKernels;
#if defined(__x86_64__)
    case KernelVariant::kAvx2:
      return kAvx2Kernels;
    case KernelVariant::kAvx512:
      return kAvx512Kernels;
    case KernelVariant::kAvx512Vnni:
      return kAvx512VnniKernels;
#else
    default:
      break;
#endif
  }
  return kPortableKernels;
}

}  // namespace vedette::ops::cpu
