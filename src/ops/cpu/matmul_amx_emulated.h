// Test only: AMX's wide kernels with tiles in plain C++. Needs AVX-512 with VNNI.
#pragma once

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {

const WideTable& emulated_wide_kernels();

}  // namespace vedette::ops::cpu
