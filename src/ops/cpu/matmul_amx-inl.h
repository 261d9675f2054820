// Wide kernels on 8-bit tiles: 16 rows by 16 outputs, one scale's columns at a time. Included by a file inside its
// unnamed namespace, after matmul_avx512-inl.h and matmul_kernel-inl.h; that file gives
//   Tiles                    a set of tiles, made ready for sums of kStep columns by its constructor
//   Tiles::load_rows<t>(p)              tile t: 16 rows of kStep int8 activations, kGroup bytes apart
//   Tiles::load_weights<t>(p)           tile t: kStep / 4 packed steps of 64 bytes
//   Tiles::clear<t>(), store<t>(p)      a tile of sums, [row][output] int32
//   Tiles::add<sum, rows, weights, signed_weights>()
//
// A packed step holds 4 columns of 16 outputs, which is a row of the instruction's second operand as it stands. A panel
// holds a group of 16 rows in whole cache lines: their values (int16: all low digits, then all high ones), their
// scales, and where the scheme has offsets the negated sums of each scale's columns as floats.
// Products take long to come out of the tiles, so three things go on at once, each some scale steps behind the one
// before: products into a ring of tiles of sums, the storing of sums, and their scaling by AVX-512. Weights whose zero
// is a constant come as signed bytes with the zero taken off, so that S needs no correction; others are unsigned. int16
// rows are two digits with a tile of sums each.

template <class K, Compute compute>
struct WideRows {
  static constexpr bool kWords = compute == Compute::kI16;
  static constexpr int kRecord = kWords ? kRecord16 : kRecord8;
  static constexpr int kDigits = kWords ? 2 : 1;
  static constexpr bool kSigned = K::kZeroShift != 0;
  static constexpr int kStepBytes = 16 * K::kStep;  // unpacked bytes under one scale
  // Of a group of a panel:
  static constexpr int kDigitBytes = kWideBlock * kGroup;
  static constexpr int kScales = kDigits * kDigitBytes;
  static constexpr int kSums = kScales + 4 * kWideBlock;  // [part][row]
  static constexpr int kPanelBytes = kSums + (K::kOffset ? K::kParts * 4 * kWideBlock : 0);
};

template <class K, Compute compute>
void fill_panel(const std::byte* rows, size_t stride, int64_t groups, std::byte* panel) {
  using W = WideRows<K, compute>;
  for (int64_t g = 0; g < groups; ++g, panel += W::kPanelBytes) {
    for (int r = 0; r < kWideBlock; ++r) {
      const std::byte* from = rows + static_cast<size_t>(r) * stride + g * W::kRecord;
      for (int digit = 0; digit < W::kDigits; ++digit)
        std::memcpy(panel + digit * W::kDigitBytes + r * kGroup, from + digit * kGroup, kGroup);
      const std::byte* behind = from + W::kDigits * kGroup;
      std::memcpy(panel + W::kScales + 4 * r, behind, 4);
      if constexpr (K::kOffset) {
        for (int part = 0; part < K::kParts; ++part)
          std::memcpy(panel + W::kSums + 4 * (kWideBlock * part + r), behind + kMinusSums + sum_offset<K>(part), 4);
      }
    }
  }
}

// Asks for the same group kWideTiles tiles on as well: those are unpacked and scaled next.
template <class K>
void unpack_tile(const TileView& view, std::byte* bytes) {
  const std::byte* next_planes = view.planes + kWideTiles * view.plane_bytes;
  const std::byte* next_scales = view.scales + kWideTiles * view.scale_bytes;
  for (int64_t g = 0; g < view.groups; ++g) {
    const std::byte* planes = view.planes + g * K::kGroupBytes;
    unroll<K::kGroupBytes / 64>(
        [&](auto line) VEDETTE_INLINE { __builtin_prefetch(next_planes + g * K::kGroupBytes + 64 * line, 0, 2); });
    __builtin_prefetch(next_scales + static_cast<int64_t>(view.scale_bytes) * g / view.groups, 0, 2);
    unroll<8>([&](auto j) VEDETTE_INLINE {
      auto q = unpack<Avx512, K::kBits, j>(planes);
      if constexpr (K::kZeroShift != 0) q = Avx512::sub8(q, Avx512::bytes(1 << K::kZeroShift));
      Avx512::store(bytes + 512 * g + 64 * j, q);
    });
  }
}

template <class K, Compute compute>
struct WideBlock {
  using W = WideRows<K, compute>;
  using F = Avx512::F;
  // Scale steps in flight: the tiles 0-3 of sums are a ring. Words take two at a time, low and high.
  static constexpr int kRing = W::kWords ? 2 : 4;
  static constexpr int kStoreBehind = kRing / 2, kScaleBehind = kStoreBehind + 1;
  static constexpr int kUnroll = 4;

  Tiles<K::kStep>& tiles;
  TileView view;
  const std::byte* bytes;
  const std::byte* panel;
  // Sums of each place of the ring: [place][low, high][row][output].
  int32_t (*sums)[W::kDigits][kWideBlock * kTileRows];

  int64_t n() const { return view.groups * K::kParts; }
  // The order of the row-invariance test's broken twin, as in in_order().
  VEDETTE_INLINE int64_t at(int64_t i) const { return kReverseWide ? n() - 1 - i : i; }

  template <int turn>
  VEDETTE_INLINE void multiply(int64_t step) const {
    constexpr int kSum = W::kWords ? 2 * (turn % kRing) : turn % kRing;
    constexpr int kWeights = 6 + turn % 2, kRows = W::kWords ? 4 : 4 + turn % 2;
    const std::byte* values = panel + step / K::kParts * W::kPanelBytes + step % K::kParts * K::kStep;
    tiles.template load_weights<kWeights>(bytes + step * W::kStepBytes);
    tiles.template load_rows<kRows>(values);
    tiles.template clear<kSum>();
    tiles.template add<kSum, kRows, kWeights, W::kSigned>();
    if constexpr (W::kWords) {
      tiles.template load_rows<5>(values + W::kDigitBytes);
      tiles.template clear<kSum + 1>();
      tiles.template add<kSum + 1, 5, kWeights, W::kSigned>();
    }
  }

  template <int turn>
  VEDETTE_INLINE void store() const {
    constexpr int kPlace = turn % kRing;
    tiles.template store<W::kWords ? 2 * kPlace : kPlace>(sums[kPlace][0]);
    if constexpr (W::kWords) tiles.template store<2 * kPlace + 1>(sums[kPlace][1]);
  }

  // acc[row] for 16 rows: see integer_block_exact, whose sums these are.
  template <int turn>
  VEDETTE_INLINE void scale(int64_t step, F* acc) const {
    const auto* place = sums[turn % kRing];
    const int64_t group = step / K::kParts;
    const int part = static_cast<int>(step % K::kParts);
    const StepScales<Avx512> scales = load_scales<Avx512, K>(view, view.scales, group, part, 0);
    const std::byte* scales_a = panel + group * W::kPanelBytes + W::kScales;
    const std::byte* minus_sums = panel + group * W::kPanelBytes + W::kSums + part * 4 * kWideBlock;
    unroll<kWideBlock>([&](auto r) VEDETTE_INLINE {
      auto sum = Avx512::load(reinterpret_cast<const std::byte*>(place[0] + r * kTileRows));
      if constexpr (W::kWords) {
        const auto high = Avx512::load(reinterpret_cast<const std::byte*>(place[1] + r * kTileRows));
        sum = Avx512::add32(sum, Avx512::shift32<8>(high));
      }
      acc[r] = accumulate<Avx512, K>(acc[r], scales, sum, scales_a + 4 * r, minus_sums + 4 * r);
    });
  }

  // kUnroll turns from `first` on; kInside: all three of each turn's steps exist.
  template <bool kInside>
  VEDETTE_INLINE void turns(int64_t first, F* acc) const {
    unroll<kUnroll>([&](auto u) VEDETTE_INLINE {
      const int64_t i = first + u;
      if (kInside || i < n()) multiply<u>(at(i));
      if (kInside || (i >= kStoreBehind && i - kStoreBehind < n())) store<kUnroll + u - kStoreBehind>();
      if (kInside || (i >= kScaleBehind && i - kScaleBehind < n()))
        scale<kUnroll + u - kScaleBehind>(at(i - kScaleBehind), acc);
    });
  }

  void run(float* result, int64_t result_stride) const {
    F acc[kWideBlock];
    unroll<kWideBlock>([&](auto r) VEDETTE_INLINE { acc[r] = Avx512::zero(); });
    turns<false>(0, acc);
    int64_t first = kUnroll;
    for (; first + kUnroll <= n(); first += kUnroll) turns<true>(first, acc);
    for (; first < n() + kScaleBehind; first += kUnroll) turns<false>(first, acc);
    unroll<kWideBlock>([&](auto r) VEDETTE_INLINE { Avx512::store(result + r * result_stride, acc[r]); });
  }
};

template <class K, Compute compute>
void run_wide(const TileView& view, const std::byte* bytes, int n_tiles, const std::byte* panel, size_t, float* result,
              int64_t result_stride) {
  Tiles<K::kStep> tiles;
  alignas(64) int32_t sums[4][WideRows<K, compute>::kDigits][kWideBlock * kTileRows];
  TileView tile = view;
  for (int t = 0; t < n_tiles; ++t) {
    WideBlock<K, compute>{tiles, tile, bytes, panel, sums}.run(result + t * kTileRows, result_stride);
    tile.scales += tile.scale_bytes;
    bytes += tile.groups * kGroup * kTileRows;
  }
}

template <class K>
constexpr void add_wide_kind(WideTable& table, KernelKind kind) {
  WideKernel* kernels = table.kernels[static_cast<size_t>(kind)];
  // 16 rows alone do not pay for the unpacking.
  constexpr int kLeastRows = 2 * kWideBlock;
  kernels[0] = {kLeastRows, WideRows<K, Compute::kI8>::kPanelBytes, unpack_tile<K>, fill_panel<K, Compute::kI8>,
                run_wide<K, Compute::kI8>};
  kernels[1] = {kLeastRows, WideRows<K, Compute::kI16>::kPanelBytes, unpack_tile<K>, fill_panel<K, Compute::kI16>,
                run_wide<K, Compute::kI16>};
}

constexpr WideTable wide_table() {
  WideTable table;
  for_integer_kinds([&](KernelKind kind, auto k) { add_wide_kind<decltype(k)>(table, kind); });
  return table;
}
