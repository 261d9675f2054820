// Wide kernels on Intel's AMX (int8 tiles), for machines that have AVX-512 with VNNI as well.
#include <immintrin.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

#include "ops/cpu/matmul_avx512-inl.h"
#include "ops/cpu/matmul_kernel-inl.h"

// The operand of ldtilecfg (Intel's Architecture Instruction Set Extensions, chapter on AMX).
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// The tiles of this thread. Written as assembly: the compiler's own intrinsics tell it of too little of the memory that
// they read and write.
template <int kStep>
class Tiles {
 public:
  Tiles() {
    TileConfig config;
    for (int t = 0; t < 8; ++t) {
      config.row_bytes[t] = t == 4 || t == 5 ? kStep : 64;
      config.rows[t] = t >= 6 ? kStep / 4 : kWideBlock;
    }
    asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
  }
  ~Tiles() { asm volatile("tilerelease" ::: "memory"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int t>
  VEDETTE_INLINE void load_rows(const std::byte* rows) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(size_t{kGroup}), "i"(t) : "memory");
  }
  template <int t>
  VEDETTE_INLINE void load_weights(const std::byte* bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(bytes), "r"(size_t{64}), "i"(t) : "memory");
  }
  template <int t>
  VEDETTE_INLINE void clear() {
    asm volatile("tilezero %%tmm%c0" ::"i"(t));
  }
  template <int t>
  VEDETTE_INLINE void store(int32_t* sums) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(sums), "r"(size_t{64}), "i"(t) : "memory");
  }
  template <int sum, int rows, int weights, bool signed_weights>
  VEDETTE_INLINE void add() {
    if constexpr (signed_weights)
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(rows), "i"(weights));
    else
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(rows), "i"(weights));
  }
};

#include "ops/cpu/matmul_amx-inl.h"

}  // namespace

constinit const WideTable kAmxWideKernels = wide_table();

}  // namespace vedette::ops::cpu
