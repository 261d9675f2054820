// Kernels for AVX-512 (F, BW, VL, DQ) with VNNI.
#include <immintrin.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

#include "ops/cpu/matmul_avx512-inl.h"
#include "ops/cpu/matmul_kernel-inl.h"

// Fewer rows do not pay for the unpacking.
constexpr int kLeastWide = 4 * kWideBlock;

// K-quants: for many rows their scales are made once, which takes 4 to 6 % of blocks of 8 rows.
constexpr MatmulKernels vnni_table() {
  MatmulKernels table = kernel_table<Avx512>(prepare_digits_avx2, round_row_avx2);
  for_integer_kinds([&](KernelKind kind, auto k) {
    using K = decltype(k);
    if constexpr (K::kForm != ScaleForm::kPlain) {
      KernelSet* set = table.set[static_cast<size_t>(kind)];
      constexpr size_t kBytes = ReadyGroup<Avx512, K>::kBytes;
      set[0].wide = {kLeastWide, 0, ready_tile<Avx512, K>, nullptr, ready_run<Avx512, K, Rows8<Avx512, K>>, kBytes};
      set[1].wide = {kLeastWide, 0, ready_tile<Avx512, K>, nullptr, ready_run<Avx512, K, Rows16<Avx512>>, kBytes};
    }
  });
  return table;
}

}  // namespace

constinit const MatmulKernels kAvx512VnniKernels = vnni_table();

}  // namespace vedette::ops::cpu
