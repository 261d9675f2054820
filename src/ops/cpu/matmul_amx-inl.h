// Wide kernels on 8-bit tiles: 16 rows by 16 outputs, one scale's columns at a time. Included by a file inside its
// unnamed namespace, after matmul_avx512-inl.h and matmul_kernel-inl.h; that file gives
//   Tiles                    a set of tiles, made ready for sums of kStep columns by its constructor
//   Tiles::load_rows<t>(p, stride)      tile t: 16 rows of kStep int8 activations
//   Tiles::load_weights<t>(p)           tile t: kStep / 4 packed steps of 64 bytes
//   Tiles::clear<t>(), store<t>(p)      a tile of sums, [row][output] int32
//   Tiles::add<sum, rows, weights, signed_weights>()
//
// A packed step holds 4 columns of 16 outputs, which is a row of the instruction's second operand as it stands. The
// sums of a group are stored, and scaled by AVX-512 while the tiles work on the next group. Weights whose zero is a
// constant come as signed bytes with the zero taken off, so that S needs no correction; others are unsigned.
// int16 rows are two digits with a tile of sums each.

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

// Starts the sums of scale step i (of all groups' parts) in the tiles of turn 0 or 1, and stores them.
template <class K, Compute compute, int turn>
VEDETTE_INLINE inline void sum_tiles(Tiles<K::kStep>& tiles, const std::byte* bytes, const std::byte* rows,
                                     size_t stride, int64_t i, int32_t (*sums)[kWideBlock * kTileRows]) {
  using W = WideRows<K, compute>;
  const std::byte* values = rows + i / K::kParts * W::kRecord + i % K::kParts * K::kStep;
  tiles.template load_weights<6>(bytes + i * W::kStepBytes);
  tiles.template clear<turn>();
  tiles.template load_rows<4>(values, stride);
  tiles.template add<turn, 4, 6, W::kSigned>();
  tiles.template store<turn>(sums[0]);
  if constexpr (W::kWords) {
    tiles.template clear<2 + turn>();
    tiles.template load_rows<5>(values + kGroup, stride);
    tiles.template add<2 + turn, 5, 6, W::kSigned>();
    tiles.template store<2 + turn>(sums[1]);
  }
}

// acc[row] for 16 rows: see integer_block_exact, whose sums these are.
template <class K, Compute compute>
VEDETTE_INLINE inline void scale_sums(const TileView& view, const std::byte* rows, size_t stride, int64_t i,
                                      const int32_t (*sums)[kWideBlock * kTileRows], Avx512::F* acc) {
  using W = WideRows<K, compute>;
  const int64_t group = i / K::kParts;
  const int part = static_cast<int>(i % K::kParts);
  const StepScales<Avx512> scales = load_scales<Avx512, K>(view, view.scales, group, part, 0);
  const std::byte* record = rows + group * W::kRecord + W::kValues;
  unroll<kWideBlock>([&](auto r) VEDETTE_INLINE {
    auto sum = Avx512::load(reinterpret_cast<const std::byte*>(sums[0] + r * kTileRows));
    if constexpr (W::kWords) {
      const auto high = Avx512::load(reinterpret_cast<const std::byte*>(sums[1] + r * kTileRows));
      sum = Avx512::add32(sum, Avx512::shift32<8>(high));
    }
    acc[r] = accumulate<Avx512, K>(acc[r], scales, sum, record + r * stride, part);
  });
}

template <class K, Compute compute>
void wide_block(Tiles<K::kStep>& tiles, const TileView& view, const std::byte* bytes, const std::byte* rows,
                size_t stride, float* result) {
  alignas(64) int32_t sums[2][2][kWideBlock * kTileRows];
  Avx512::F acc[kWideBlock];
  unroll<kWideBlock>([&](auto r) VEDETTE_INLINE { acc[r] = Avx512::zero(); });
  const int64_t n = view.groups * K::kParts;
  // The order of the row-invariance test's broken twin, as in in_order().
  const auto at = [&](int64_t i) VEDETTE_INLINE { return kReverseWide ? n - 1 - i : i; };
  sum_tiles<K, compute, 0>(tiles, bytes, rows, stride, at(0), sums[0]);
  int64_t i = 0;
  for (; i + 2 < n; i += 2) {
    sum_tiles<K, compute, 1>(tiles, bytes, rows, stride, at(i + 1), sums[1]);
    scale_sums<K, compute>(view, rows, stride, at(i), sums[0], acc);
    sum_tiles<K, compute, 0>(tiles, bytes, rows, stride, at(i + 2), sums[0]);
    scale_sums<K, compute>(view, rows, stride, at(i + 1), sums[1], acc);
  }
  if (i + 1 < n) sum_tiles<K, compute, 1>(tiles, bytes, rows, stride, at(i + 1), sums[1]);
  scale_sums<K, compute>(view, rows, stride, at(i), sums[0], acc);
  if (i + 1 < n) scale_sums<K, compute>(view, rows, stride, at(i + 1), sums[1], acc);
  unroll<kWideBlock>([&](auto r) VEDETTE_INLINE { Avx512::store(result + r * kTileRows, acc[r]); });
}

template <class K, Compute compute>
void wide_rows(const TileView& view, const std::byte* bytes, const std::byte* rows, size_t stride, int n_rows,
               float* result) {
  Tiles<K::kStep> tiles;
  for (int row = 0; row < n_rows; row += kWideBlock) {
    // The last block overlaps the one before: what it computes twice is the same.
    const int first = row + kWideBlock <= n_rows ? row : n_rows - kWideBlock;
    wide_block<K, compute>(tiles, view, bytes, rows + static_cast<size_t>(first) * stride, stride,
                           result + first * kTileRows);
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
