// Wide kernels on 8-bit tiles: 16 rows by 16 outputs, one scale's columns at a time. Included by a file inside its
// unnamed namespace, after matmul_avx512-inl.h and matmul_kernel-inl.h; that file gives
//   Tiles                    a set of tiles, made ready for sums of kStep columns by its constructor
//   Tiles::load_rows<t>(p, stride)      tile t: 16 rows of kStep int8 activations
//   Tiles::load_weights<t>(p)           tile t: kStep / 4 packed steps of 64 bytes
//   Tiles::clear<t>(), store<t>(p)      a tile of sums, [row][output] int32
//   Tiles::add<sum, rows, weights, signed_weights>()
//
// A packed step holds 4 columns of 16 outputs, which is a row of the instruction's second operand as it stands.
// Products take long to come out of the tiles, so three things go on at once, each some scale steps behind the one
// before: products into a ring of tiles of sums, the storing of sums, and their scaling by AVX-512. Weights whose zero
// is a constant come as signed bytes with the zero taken off, so that S needs no correction; others are unsigned. int16
// rows are two digits with a tile of sums each.

template <class K, Compute compute>
struct WideRows {
  static constexpr bool kWords = compute == Compute::kI16;
  static constexpr int kRecord = kWords ? kRecord16 : kRecord8;
  static constexpr int kValues = kWords ? 2 * kGroup : kGroup;
  static constexpr bool kSigned = K::kZeroShift != 0;
  static constexpr int kStepBytes = 16 * K::kStep;  // unpacked bytes under one scale
};

template <class K>
void unpack_tile(const TileView& view, std::byte* bytes) {
  for (int64_t g = 0; g < view.groups; ++g) {
    const std::byte* planes = view.planes + g * K::kGroupBytes;
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
  const TileView& view;
  const std::byte* bytes;
  const std::byte* rows;
  size_t stride;
  // Sums of each place of the ring: [place][low, high][row][output].
  int32_t (*sums)[2][kWideBlock * kTileRows];

  int64_t n() const { return view.groups * K::kParts; }
  // The order of the row-invariance test's broken twin, as in in_order().
  VEDETTE_INLINE int64_t at(int64_t i) const { return kReverseWide ? n() - 1 - i : i; }

  template <int turn>
  VEDETTE_INLINE void multiply(int64_t step) const {
    constexpr int kSum = W::kWords ? 2 * (turn % kRing) : turn % kRing;
    constexpr int kWeights = 6 + turn % 2, kRows = W::kWords ? 4 : 4 + turn % 2;
    const std::byte* values = rows + step / K::kParts * W::kRecord + step % K::kParts * K::kStep;
    tiles.template load_weights<kWeights>(bytes + step * W::kStepBytes);
    tiles.template load_rows<kRows>(values, stride);
    tiles.template clear<kSum>();
    tiles.template add<kSum, kRows, kWeights, W::kSigned>();
    if constexpr (W::kWords) {
      tiles.template load_rows<5>(values + kGroup, stride);
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
    const std::byte* record = rows + group * W::kRecord + W::kValues;
    unroll<kWideBlock>([&](auto r) VEDETTE_INLINE {
      auto sum = Avx512::load(reinterpret_cast<const std::byte*>(place[0] + r * kTileRows));
      if constexpr (W::kWords) {
        const auto high = Avx512::load(reinterpret_cast<const std::byte*>(place[1] + r * kTileRows));
        sum = Avx512::add32(sum, Avx512::shift32<8>(high));
      }
      acc[r] = accumulate<Avx512, K>(acc[r], scales, sum, record + r * stride, part);
    });
  }

  void run(float* result, int64_t result_stride) const {
    F acc[kWideBlock];
    unroll<kWideBlock>([&](auto r) VEDETTE_INLINE { acc[r] = Avx512::zero(); });
    for (int64_t first = 0; first < n() + kScaleBehind; first += kUnroll) {
      unroll<kUnroll>([&](auto u) VEDETTE_INLINE {
        const int64_t i = first + u;
        if (i < n()) multiply<u>(at(i));
        if (i >= kStoreBehind && i - kStoreBehind < n()) store<kUnroll + u - kStoreBehind>();
        if (i >= kScaleBehind && i - kScaleBehind < n()) scale<kUnroll + u - kScaleBehind>(at(i - kScaleBehind), acc);
      });
    }
    unroll<kWideBlock>([&](auto r) VEDETTE_INLINE { Avx512::store(result + r * result_stride, acc[r]); });
  }
};

template <class K, Compute compute>
void wide_rows(const TileView& view, const std::byte* bytes, const std::byte* rows, size_t stride, int n_rows,
               float* result, int64_t result_stride) {
  Tiles<K::kStep> tiles;
  alignas(64) int32_t sums[4][2][kWideBlock * kTileRows];
  for (int row = 0; row < n_rows; row += kWideBlock) {
    // The last block overlaps the one before: what it computes twice is the same.
    const int first = row + kWideBlock <= n_rows ? row : n_rows - kWideBlock;
    WideBlock<K, compute>{tiles, view, bytes, rows + static_cast<size_t>(first) * stride, stride, sums}.run(
        result + first * result_stride, result_stride);
  }
}

template <class K>
constexpr void add_wide_kind(WideTable& table, KernelKind kind) {
  WideKernel* kernels = table.kernels[static_cast<size_t>(kind)];
  kernels[0] = {unpack_tile<K>, wide_rows<K, Compute::kI8>};
  kernels[1] = {unpack_tile<K>, wide_rows<K, Compute::kI16>};
}

constexpr WideTable wide_table() {
  WideTable table;
  for_integer_kinds([&](KernelKind kind, auto k) { add_wide_kind<decltype(k)>(table, kind); });
  return table;
}
