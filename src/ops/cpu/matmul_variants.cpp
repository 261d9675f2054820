// Which kernels run here: the instruction sets of the machine, AVX-512 with and without VNNI told apart.
#include <algorithm>
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
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512vnni")) variants.push_back(KernelVariant::kAvx512Vnni);
#endif
        break;
      case Isa::kAmx:
        variants.push_back(KernelVariant::kAmx);
        break;
      case Isa::kNeon:
        variants.push_back(KernelVariant::kNeon);
        break;
    }
  }
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
    case KernelVariant::kAmx:
      return "amx";
    case KernelVariant::kNeon:
      return "neon";
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
    case Isa::kAmx:
      return KernelVariant::kAmx;
    case Isa::kNeon:
      return KernelVariant::kNeon;
  }
  const auto variants = available_variants();
  const bool vnni = std::find(variants.begin(), variants.end(), KernelVariant::kAvx512Vnni) != variants.end();
  return vnni ? KernelVariant::kAvx512Vnni : KernelVariant::kAvx512;
}

MatmulKernels with_wide(const MatmulKernels& narrow, const WideTable& wide) {
  MatmulKernels out = narrow;
  for (size_t kind = 0; kind < kKernelKinds; ++kind)
    for (int compute = 0; compute < 3; ++compute) out.set[kind][compute].wide = wide.kernels[kind][compute];
  return out;
}

const MatmulKernels& kernels_of(KernelVariant variant) {
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
    case KernelVariant::kAmx: {
      static const MatmulKernels amx = with_wide(kAvx512VnniKernels, kAmxWideKernels);
      return amx;
    }
#elif defined(__aarch64__)
    case KernelVariant::kNeon:
      return kNeonKernels;
#endif
    default:
      break;
  }
  return kPortableKernels;
}

}  // namespace vedette::ops::cpu
