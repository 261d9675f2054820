// The wide kernels on tiles in plain C++: tests run them on machines without AMX.
#include "ops/cpu/matmul_amx_emulated.h"

#include <immintrin.h>

#include <cstring>
#include <type_traits>
#include <utility>

namespace vedette::ops::cpu {
namespace {

#include "ops/cpu/matmul_avx512-inl.h"
#include "ops/cpu/matmul_kernel-inl.h"

template <int kStep>
class Tiles {
 public:
  template <int t>
  void load_rows(const std::byte* rows) {
    for (int r = 0; r < kWideBlock; ++r) std::memcpy(tile_[t] + 64 * r, rows + kGroup * r, kStep);
  }
  template <int t>
  void load_weights(const std::byte* bytes) {
    std::memcpy(tile_[t], bytes, 16 * kStep);
  }
  template <int t>
  void clear() {
    std::memset(tile_[t], 0, sizeof tile_[t]);
  }
  template <int t>
  void store(int32_t* sums) {
    std::memcpy(sums, tile_[t], sizeof tile_[t]);
  }
  template <int sum, int rows, int weights, bool signed_weights>
  void add() {
    for (int r = 0; r < kWideBlock; ++r) {
      for (int k = 0; k < kStep; ++k) {
        for (int n = 0; n < kTileRows; ++n) {
          const std::byte weight = tile_[weights][64 * (k / 4) + 4 * n + k % 4];
          const int w = signed_weights ? static_cast<int8_t>(weight) : static_cast<int>(weight);
          int32_t total;
          std::byte* place = tile_[sum] + 4 * (kTileRows * r + n);
          std::memcpy(&total, place, sizeof total);
          total += w * static_cast<int8_t>(tile_[rows][64 * r + k]);
          std::memcpy(place, &total, sizeof total);
        }
      }
    }
  }

 private:
  std::byte tile_[8][1024] = {};
};

#include "ops/cpu/matmul_amx-inl.h"

}  // namespace

const WideTable& emulated_wide_kernels() {
  static constinit const WideTable table = wide_table();
  return table;
}

}  // namespace vedette::ops::cpu
