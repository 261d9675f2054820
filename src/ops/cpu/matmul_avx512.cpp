// Kernels for AVX-512 (F, BW, VL, DQ).
#include <immintrin.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

#include "ops/cpu/matmul_avx512-inl.h"
#include "ops/cpu/matmul_kernel-inl.h"

}  // namespace

constinit const MatmulKernels kAvx512Kernels = kernel_table<Avx512>(prepare_row_avx2, round_row_avx2);

}  // namespace vedette::ops::cpu
