// The integer products of AVX2: both halves of a tile (or of several, at one row) against a few rows, so that a
// broadcast of activations serves them all. Included by matmul_avx2.cpp behind matmul_kernel-inl.h, in its unnamed
// namespace.
//
// Vector instructions of a step of 16 outputs, 32 columns and one row at i8, apart from what rows share:
//
//   4 bits   16 byte products, 14 sums of 16 bits, 2 widenings, 2 + 1 for the zero, 6 for the scale         41
//   5 bits   16, 12, 4 and 2, 3, 6                                                                          43
//   6 bits   16, 8, 8 and 4, 5, 12: two scales                                                              53
//   8 bits   32, 28, 4 and 2, 3, 6: two nibbles                                                             75
//
// and 16 bits 32 word products, 30 sums, 3, 6: 71. Offsets instead of a zero are one more. Of these the products,
// widenings and scales run on two ports of both makers' cores, all on four of Zen's (8 bits: 19 cycles, 4: 10.5) and
// three of Intel's. Signs moved from the weights to the activations would do with one product for 8 bits, but each
// then needs a sign instruction and a widening, and these share the products' ports: 24 cycles on Zen.

// Four rows: 8 sums, 2 lines of weights, an activation and a product fit 16 registers.
constexpr int kRowsAtOnce = 4;

// Byte lines of one group: as packed, or made ready by ready_tile. Half h is h & 1 of tile h / 2.
template <class K, bool wide>
struct Lines {
  static constexpr bool kUnpacked = wide && K::kBits != 8;
  static constexpr int kGroupBytes = kUnpacked ? ReadyGroup<Avx2, K>::kBytes : K::kGroupBytes;
  const std::byte* group;
  size_t tile_bytes;

  template <int step>
  VEDETTE_INLINE __m256i load(int half) const {
    const std::byte* at = group + static_cast<size_t>(half / 2) * tile_bytes + 32 * (half & 1);
    if constexpr (kUnpacked)
      return Avx2::load(at + 64 * step);
    else
      return unpack<Avx2, K::kBits, step>(at);
  }
  VEDETTE_INLINE StepScales<Avx2> scales(const TileView& view, int64_t g, int part, int half) const {
    const int lane = 8 * (half & 1);
    if constexpr (kUnpacked)
      return ReadyGroup<Avx2, K>{group + 4 * lane}.scales(part);
    else
      return load_scales<Avx2, K>(view, view.scales + static_cast<size_t>(half / 2) * view.scale_bytes, g, part, lane);
  }
};

// Products of one scale's columns: sums of 16 bits for as many steps as cannot overflow (2 * 127 * (2^bits - 1) each),
// then of 32.
template <class K, int kHalves, int kRows>
struct ByteProducts {
  static constexpr int kRun = K::kBits <= 4 ? 8 : K::kBits == 5 ? 4 : 2;
  static constexpr int kValues = kGroup, kRecord = kRecord8;
  __m256i narrow[kHalves][kRows], sum[kHalves][kRows];

  template <int part, class L>
  VEDETTE_INLINE void run(const L& lines, const std::byte* const* rows, int64_t at) {
    unroll<K::kSteps>([&](auto j) VEDETTE_INLINE {
      constexpr int kStep = part * K::kSteps + j;
      constexpr bool kFirst = j % kRun == 0, kLast = j % kRun == kRun - 1 || j == K::kSteps - 1;
      __m256i q[kHalves];
      unroll<kHalves>([&](auto h) VEDETTE_INLINE { q[h] = lines.template load<kStep>(h); });
      unroll<kRows>([&](auto r) VEDETTE_INLINE {
        const __m256i a = Avx2::broadcast_word(rows[r] + at + 4 * kStep);
        unroll<kHalves>([&](auto h) VEDETTE_INLINE {
          const __m256i product = Avx2::pair_bytes(q[h], a);
          narrow[h][r] = kFirst ? product : Avx2::add16(narrow[h][r], product);
          if constexpr (kLast) {
            const __m256i wide = Avx2::pair_words(narrow[h][r], Avx2::words(1));
            sum[h][r] = j < kRun ? wide : Avx2::add32(sum[h][r], wide);
          }
        });
      });
    });
  }
};

// 8-bit weights as two nibbles, one half after the other.
template <class K, int kHalves, int kRows>
struct NibbleProducts {
  static constexpr int kValues = kGroup, kRecord = kRecord8;
  __m256i sum[kHalves][kRows];

  template <int part, class L>
  VEDETTE_INLINE void run(const L& lines, const std::byte* const* rows, int64_t at) {
    static_assert(part == 0);
    unroll<kHalves>([&](auto h) VEDETTE_INLINE {
      __m256i low[kRows], high[kRows];
      unroll<K::kSteps>([&](auto j) VEDETTE_INLINE {
        const __m256i q = lines.template load<j>(h);
        const __m256i q_low = Avx2::bit_and(q, Avx2::bytes(15));
        const __m256i q_high = Avx2::bit_and(Avx2::shift16<-4>(q), Avx2::bytes(15));
        unroll<kRows>([&](auto r) VEDETTE_INLINE {
          const __m256i a = Avx2::broadcast_word(rows[r] + at + 4 * j);
          const __m256i low_product = Avx2::pair_bytes(q_low, a), high_product = Avx2::pair_bytes(q_high, a);
          low[r] = j == 0 ? low_product : Avx2::add16(low[r], low_product);
          high[r] = j == 0 ? high_product : Avx2::add16(high[r], high_product);
        });
      });
      // The other half loads its activations again, rather than finding this one's on the stack.
      asm volatile("" ::: "memory");
      unroll<kRows>([&](auto r) VEDETTE_INLINE {
        sum[h][r] = Avx2::add32(Avx2::pair_words(low[r], Avx2::words(1)), Avx2::pair_words(high[r], Avx2::words(16)));
      });
    });
  }
};

// int16 rows: bytes of weights as the 16-bit words of columns 0 and 2, and of 1 and 3.
template <class K, int kHalves, int kRows>
struct WordProducts {
  static constexpr int kValues = 2 * kGroup, kRecord = kRecord16;
  __m256i sum[kHalves][kRows];

  template <int part, class L>
  VEDETTE_INLINE void run(const L& lines, const std::byte* const* rows, int64_t at) {
    unroll<K::kSteps>([&](auto j) VEDETTE_INLINE {
      constexpr int kStep = part * K::kSteps + j;
      __m256i even[kHalves], odd[kHalves];
      unroll<kHalves>([&](auto h) VEDETTE_INLINE {
        const __m256i q = lines.template load<kStep>(h);
        even[h] = Avx2::bit_and(q, Avx2::words(0x00ff));
        odd[h] = Avx2::shift16<-8>(q);
      });
      unroll<kRows>([&](auto r) VEDETTE_INLINE {
        const __m256i a = Avx2::broadcast_word(rows[r] + at + 8 * kStep);
        unroll<kHalves>([&](auto h) VEDETTE_INLINE {
          const __m256i product = Avx2::pair_words(even[h], a);
          sum[h][r] = j == 0 ? product : Avx2::add32(sum[h][r], product);
        });
        const __m256i b = Avx2::broadcast_word(rows[r] + at + 8 * kStep + 4);
        unroll<kHalves>([&](auto h)
                            VEDETTE_INLINE { sum[h][r] = Avx2::add32(sum[h][r], Avx2::pair_words(odd[h], b)); });
      });
    });
  }
};

template <class K, Compute compute, int kHalves, int kRows>
using Products = std::conditional_t<
    compute == Compute::kI16, WordProducts<K, kHalves, kRows>,
    std::conditional_t<K::kBits == 8, NibbleProducts<K, kHalves, kRows>, ByteProducts<K, kHalves, kRows>>>;

// acc += the canonical sum of one step (see accumulate()), for all halves of one row; `record` lies behind its values.
template <class K, int kHalves>
VEDETTE_INLINE inline void add_step(__m256 (&acc)[kHalves], const StepScales<Avx2> (&scales)[kHalves],
                                    const __m256i (&sum)[kHalves], const std::byte* record, int part) {
  const __m256i first = first_sum<Avx2, K>(record, part);
  unroll<kHalves>([&](auto h) VEDETTE_INLINE {
    const __m256i total = K::kZeroShift == 0 ? sum[h] : Avx2::add32(sum[h], first);
    acc[h] = accumulate<Avx2, K>(acc[h], scales[h], total, record, record + kMinusSums + sum_offset<K>(part));
  });
}

// kTiles tiles of `lines`, kRows rows; result[tile][row][output], rows result_stride floats apart, tiles kRows such.
// The float sums of several rows live there: registers hold the integers' sums.
template <class K, Compute compute, bool wide, int kTiles, int kRows>
VEDETTE_INLINE inline void avx2_block(const TileView& view, const std::byte* planes, const std::byte* const* rows,
                                      float* result, int64_t result_stride) {
  constexpr int kHalves = 2 * kTiles;
  using P = Products<K, compute, kHalves, kRows>;
  constexpr bool kInRegisters = kRows == 1;
  __m256 acc[kHalves];
  const auto at_result = [&](int h, int r)
                             VEDETTE_INLINE { return result + (h / 2 * kRows + r) * result_stride + 8 * (h & 1); };
  unroll<kHalves>([&](auto h) VEDETTE_INLINE {
    acc[h] = Avx2::zero();
    unroll<kRows>([&](auto r) VEDETTE_INLINE { Avx2::store(at_result(h, r), Avx2::zero()); });
  });
  for (int64_t i = 0; i < view.groups; ++i) {
    const int64_t g = in_order<kRows>(i, view.groups);
    const Lines<K, wide> lines = {planes + g * Lines<K, wide>::kGroupBytes, view.plane_bytes};
    const int64_t at = g * P::kRecord;
    if constexpr (!wide) prefetch_group<K>(view, lines.group, view.scales, g);
    unroll<K::kParts>([&](auto part) VEDETTE_INLINE {
      P products;
      products.template run<part>(lines, rows, at);
      StepScales<Avx2> scales[kHalves];
      unroll<kHalves>([&](auto h) VEDETTE_INLINE { scales[h] = lines.scales(view, g, part, h); });
      unroll<kRows>([&](auto r) VEDETTE_INLINE {
        __m256i sum[kHalves];
        unroll<kHalves>([&](auto h) VEDETTE_INLINE {
          sum[h] = products.sum[h][r];
          if constexpr (!kInRegisters) acc[h] = _mm256_loadu_ps(at_result(h, r));
        });
        add_step<K>(acc, scales, sum, rows[r] + at + P::kValues, part);
        if constexpr (!kInRegisters)
          unroll<kHalves>([&](auto h) VEDETTE_INLINE { Avx2::store(at_result(h, r), acc[h]); });
      });
    });
  }
  if constexpr (kInRegisters) unroll<kHalves>([&](auto h) VEDETTE_INLINE { Avx2::store(at_result(h, 0), acc[h]); });
}

template <class K, Compute compute, int kTiles, int kRows>
void avx2_rows(const TileView& view, const std::byte* const* rows, float* result) {
  if constexpr (kRows > kRowsAtOnce) {
    avx2_rows<K, compute, kTiles, kRowsAtOnce>(view, rows, result);
    avx2_rows<K, compute, kTiles, kRows - kRowsAtOnce>(view, rows + kRowsAtOnce, result + kRowsAtOnce * kTileRows);
  } else {
    avx2_block<K, compute, false, kTiles, kRows>(view, view.planes, rows, result, kTileRows);
  }
}

// 8-bit weights are read where they are.
template <class K>
void wide_unpack(const TileView& view, std::byte* bytes) {
  if constexpr (K::kBits != 8) ready_tile<Avx2, K>(view, bytes);
}

template <class K, Compute compute>
void wide_run(const TileView& view, const std::byte* bytes, int n_tiles, const std::byte* rows, size_t stride,
              float* result, int64_t result_stride) {
  static_assert(kWideBlock % kRowsAtOnce == 0);
  TileView tile = view;
  for (int t = 0; t < n_tiles; ++t) {
    const std::byte* planes = K::kBits == 8 ? tile.planes : bytes + t * tile.groups * ReadyGroup<Avx2, K>::kBytes;
    for (int first = 0; first < kWideBlock; first += kRowsAtOnce) {
      const std::byte* block[kRowsAtOnce];
      for (int r = 0; r < kRowsAtOnce; ++r) block[r] = rows + static_cast<size_t>(first + r) * stride;
      avx2_block<K, compute, true, 1, kRowsAtOnce>(tile, planes, block, result + first * result_stride + t * kTileRows,
                                                   result_stride);
    }
    tile.planes += tile.plane_bytes;
    tile.scales += tile.scale_bytes;
  }
}

template <class K, Compute compute>
constexpr void set_avx2_kernels(KernelSet& set) {
  set = {};
  set.block[0] = {avx2_rows<K, compute, 1, 1>, 1};
  set.block[1] = {avx2_rows<K, compute, 1, 2>, 2};
  set.block[2] = {avx2_rows<K, compute, 1, 3>, 3};
  set.block[3] = {avx2_rows<K, compute, 1, 4>, 4};
  set.block[5] = {avx2_rows<K, compute, 1, 6>, 6};
  set.block[7] = {avx2_rows<K, compute, 1, 8>, 8};
  set_widths(set);
  set.wide = {
      kWideBlock, 0, wide_unpack<K>, nullptr, wide_run<K, compute>, static_cast<size_t>(ReadyGroup<Avx2, K>::kBytes)};
}

// The common kernels where they are for floats, those above for integers.
constexpr MatmulKernels avx2_table() {
  MatmulKernels table = kernel_table<Avx2>(prepare_row_avx2, round_row_avx2);
  for_integer_kinds([&](KernelKind kind, auto k) {
    KernelSet* set = table.set[static_cast<size_t>(kind)];
    set_avx2_kernels<decltype(k), Compute::kI8>(set[0]);
    set_avx2_kernels<decltype(k), Compute::kI16>(set[1]);
  });
  return table;
}
