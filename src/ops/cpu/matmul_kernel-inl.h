// The kernels, written once over a vector type V. Each instruction set's file defines V in its own unnamed namespace
// (so that no function compiled with its flags can be linked into the rest of the program), includes this file there,
// and lists the kernels with kernel_table<V>().
//
// V has kLanes outputs (16, or 8: then a tile is two halves), F (floats), I (32-bit lanes of 4 bytes) and, for the
// integer sums, kDigits (how int16 rows are read), add_words for rows of words (adds 2 products of 16-bit values to
// each lane's sum) and either add_bytes (4 products of
// unsigned weights and signed bytes; kAddsBytes) or what PairDot8 is made of. Where add_bytes takes both as signed, V
// also has minus_128 and negative32. Values that all lanes share are passed
// by address.
// Needs included before: <type_traits>, <utility>, "ops/cpu/matmul_kernels.h".

#ifdef VEDETTE_BREAK_ROW_INVARIANCE
constexpr bool kReverseWide = true;
#else
constexpr bool kReverseWide = false;
#endif

// The order of groups (or columns). The test of the row-invariance test turns it round for wide blocks.
template <int kRows>
inline int64_t in_order(int64_t i, int64_t n) {
  return kReverseWide && kRows >= 2 ? n - 1 - i : i;
}

#define VEDETTE_INLINE __attribute__((always_inline))
#ifdef __clang__
#define VEDETTE_UNROLL _Pragma("unroll")
#else
#define VEDETTE_UNROLL _Pragma("GCC unroll 8")
#endif
// A loop over the rows of a block, unrolled so that their sums stay in registers.
#define VEDETTE_ROWS VEDETTE_UNROLL for (int r = 0; r < kRows; ++r)
#define VEDETTE_TILES VEDETTE_UNROLL for (int t = 0; t < kTiles; ++t)

template <class F, int... i>
VEDETTE_INLINE inline void unroll_indices(F&& body, std::integer_sequence<int, i...>) {
  (body(std::integral_constant<int, i>{}), ...);
}
// body(0), ..., body(n - 1) with constants.
template <int n, class F>
VEDETTE_INLINE inline void unroll(F&& body) {
  unroll_indices(body, std::make_integer_sequence<int, n>{});
}

template <int bits, int step, bool has_offset, int zero_shift, ScaleForm form>
struct IntegerKind {
  static constexpr int kBits = bits;
  static constexpr int kStep = step;  // columns under one scale, at most 32
  static constexpr bool kOffset = has_offset;
  static constexpr int kZeroShift = zero_shift;  // zero = 1 << zero_shift; 0: none
  static constexpr ScaleForm kForm = form;
  static constexpr int kSteps = step / 4;  // packed steps under one scale
  static constexpr int kParts = kGroup / step;
  static constexpr int kGroupBytes = 64 * bits;
};

// Packed step j (0..7) of a group as bytes. `planes` already points at the half tile.
template <class V, int bits, int j>
VEDETTE_INLINE inline typename V::I unpack(const std::byte* planes) {
  if constexpr (bits == 8) {
    return V::load(planes + 64 * j);
  } else if constexpr (bits == 2 || bits == 3) {
    const auto low = V::bit_and(V::template shift16<-2 * (j % 4)>(V::load(planes + 64 * (j / 4))), V::bytes(3));
    if constexpr (bits == 2)
      return low;
    else
      return V::or_and(low, V::template shift16<2 - j>(V::load(planes + 128)), V::bytes(4));
  } else {
    const auto low = V::bit_and(V::template shift16<-4 * (j % 2)>(V::load(planes + 64 * (j / 2))), V::bytes(15));
    if constexpr (bits == 4)
      return low;
    else if constexpr (bits == 5)
      return V::or_and(low, V::template shift16<4 - j>(V::load(planes + 256)), V::bytes(16));
    else
      return V::or_and(low, V::template shift16<4 - 2 * (j % 4)>(V::load(planes + 256 + 64 * (j / 4))), V::bytes(48));
  }
}

template <class V>
struct StepScales {
  typename V::F scale, offset;  // offset is subtracted for K-quants, added for plain scales
};

template <class V>
VEDETTE_INLINE inline typename V::F load_side(DType type, const std::byte* data, int64_t index) {
  switch (type) {
    case DType::kF32:
      return V::load_f32(data + 4 * index);
    case DType::kF16:
      return V::load_f16(data + 2 * index);
    default:
      return V::load_bf16(data + 2 * index);
  }
}

template <class V, class K>
VEDETTE_INLINE inline StepScales<V> load_scales(const TileView& view, const std::byte* scales, int64_t group, int part,
                                                int first_lane) {
  if constexpr (K::kForm == ScaleForm::kPlain) {
    if constexpr (!K::kOffset) {
      return {V::load_f16(scales + 2 * (kTileRows * group + first_lane)), V::zero()};
    } else {
      const int64_t at = 2 * kTileRows * (group >> view.group_shift) + first_lane;
      return {load_side<V>(view.side, scales, at), load_side<V>(view.side, scales, at + kTileRows)};
    }
  } else {
    constexpr auto kRecord = static_cast<int64_t>(super_scale_bytes(K::kForm, K::kOffset, K::kStep));
    constexpr int kBase = K::kOffset ? 64 : 32;
    constexpr int kStride = K::kOffset && K::kForm == ScaleForm::kSuperUnsigned ? 32 : 16;
    const std::byte* record = scales + (group >> 3) * kRecord;
    const std::byte* small = record + kBase + ((group & 7) * K::kParts + part) * kStride + first_lane;
    const auto d = V::load_f16(record + 2 * first_lane);
    if constexpr (K::kForm == ScaleForm::kSuperSigned) {
      return {V::mul(d, V::to_float(V::load_s8(small))), V::zero()};
    } else {
      const auto dmin = V::load_f16(record + 32 + 2 * first_lane);
      if constexpr (K::kForm == ScaleForm::kSuperNibbles) {
        const auto both = V::load_u8(small);
        return {V::mul(d, V::to_float(V::bit_and(both, V::bytes(15)))),
                V::mul(dmin, V::to_float(V::template shift32<-4>(both)))};
      } else {
        return {V::mul(d, V::to_float(V::load_u8(small))), V::mul(dmin, V::to_float(V::load_u8(small + 16)))};
      }
    }
  }
}

// acc += scale * s_a * S, then + offset * s_a * A: the canonical sum of one step. `scale_a` and `minus_sum`, both in
// memory, are the row's scale and -A, which only schemes with offsets read.
template <class V, class K>
VEDETTE_INLINE inline typename V::F accumulate(typename V::F acc, const StepScales<V>& scales, typename V::I sum,
                                               const std::byte* scale_a, const std::byte* minus_sum) {
  const auto s_a = V::broadcast(scale_a);
  acc = V::fma(V::mul(scales.scale, s_a), V::to_float(sum), acc);
  if constexpr (K::kOffset) {
    const auto minus_a = V::broadcast(minus_sum);
    const auto weight = V::mul(scales.offset, s_a);
    // The sign of A is free: (-m) * (-A) and m * A have the same bits.
    acc = K::kForm == ScaleForm::kPlain ? V::fnma(weight, minus_a, acc) : V::fma(weight, minus_a, acc);
  }
  return acc;
}

// Where a record's sums of a scale's columns stand, behind its sums of the first half: the second half, the whole.
template <class K>
constexpr int sum_offset(int part) {
  return K::kParts == 2 ? 4 * part : 8;
}

// Where V multiplies signed bytes alone, weights of 8 bits take part less 128, and the sum starts with 128 * A more.
template <class V, class K>
inline constexpr bool kMinus128 = K::kBits == 8 && requires(typename V::I q) { V::minus_128(q); };

template <class V, class K, int j>
VEDETTE_INLINE inline typename V::I unpack_factors(const std::byte* planes) {
  if constexpr (kMinus128<V, K>)
    return V::minus_128(unpack<V, K::kBits, j>(planes));
  else
    return unpack<V, K::kBits, j>(planes);
}

// -zero * A, where the integers' sum starts.
template <class V, class K>
VEDETTE_INLINE inline typename V::I first_sum(const std::byte* record, int part) {
  constexpr int kZero = K::kZeroShift == 0 ? 0 : 1 << K::kZeroShift;
  const std::byte* minus_a = record + kMinusCounts + sum_offset<K>(part);
  if constexpr (kZero == (kMinus128<V, K> ? 128 : 0)) {
    return V::zero_word();
  } else if constexpr (kMinus128<V, K>) {
    static_assert(kZero == 0);
    return V::negative32(V::template shift32<7>(V::broadcast_word(minus_a)));
  } else {
    return V::template shift32<K::kZeroShift>(V::broadcast_word(minus_a));
  }
}

// Sum of one scale's products of bytes, in 32 bits from the start.
template <class V>
struct QuadDot8 {
  typename V::I sum;
  VEDETTE_INLINE void start(typename V::I first) { sum = first; }
  template <int j>
  VEDETTE_INLINE void add(const typename V::I& q, const std::byte* values) {
    V::add_bytes(sum, q, values);
  }
  VEDETTE_INLINE typename V::I total() const { return sum; }
};

// The same where products come in pairs of 16 bits: summed so for as many steps as cannot overflow
// (2 * 127 * (2^bits - 1) each), then widened. 8-bit weights are two nibbles with a sum each.
template <class V, int bits, int steps>
struct PairDot8 {
  using I = typename V::I;
  static constexpr int kRun = bits <= 4 || bits == 8 ? 8 : bits == 5 ? 4 : 2;
  I sum, low, high;
  VEDETTE_INLINE void start(I first) { sum = first; }
  template <int j>
  VEDETTE_INLINE void add(I q, const std::byte* values) {
    const I a = V::broadcast_word(values);
    const I low_products = V::pair_bytes(bits == 8 ? V::bit_and(q, V::bytes(15)) : q, a);
    low = j % kRun == 0 ? low_products : V::add16(low, low_products);
    if constexpr (bits == 8) {
      const I high_products = V::pair_bytes(V::bit_and(V::template shift16<-4>(q), V::bytes(15)), a);
      high = j % kRun == 0 ? high_products : V::add16(high, high_products);
    }
    if constexpr (j % kRun == kRun - 1 || j == steps - 1) {
      sum = V::add32(sum, V::pair_words(low, V::words(1)));
      if constexpr (bits == 8) sum = V::add32(sum, V::pair_words(high, V::words(16)));
    }
  }
  VEDETTE_INLINE I total() const { return sum; }
};

// How int8 and int16 rows differ: the bytes of a group's values and from packed step to packed step, the length of a
// record, and a packed step's product.
template <class V, class K>
struct Rows8 {
  static constexpr int kValues = kGroup, kStepBytes = 4, kRecord = kRecord8;
  using Weights = typename V::I;
  VEDETTE_INLINE static Weights split(const typename V::I& q) { return q; }
  struct Dot : std::conditional_t<V::kAddsBytes, QuadDot8<V>, PairDot8<V, K::kBits, K::kSteps>> {};
};

// int16 values in two digits, x = 256 high + low: their sums are joined as whole integers.
template <class V>
struct DigitRows16 {
  static constexpr int kValues = 2 * kGroup, kStepBytes = 4, kRecord = kRecord16;
  using Weights = typename V::I;
  VEDETTE_INLINE static Weights split(const typename V::I& q) { return q; }
  struct Dot {
    typename V::I low, high;
    VEDETTE_INLINE void start(typename V::I first) {
      low = first;
      high = V::zero_word();
    }
    template <int j>
    VEDETTE_INLINE void add(const Weights& q, const std::byte* values) {
      V::add_bytes(low, q, values);
      V::add_bytes(high, q, values + kGroup);
    }
    VEDETTE_INLINE typename V::I total() const { return V::add32(low, V::template shift32<8>(high)); }
  };
};

template <class V>
struct WordRows16 {
  static constexpr int kValues = 2 * kGroup, kStepBytes = 8, kRecord = kRecord16;
  struct Weights {
    typename V::I even, odd;  // columns 0 and 2 of the step, 1 and 3
  };
  VEDETTE_INLINE static Weights split(const typename V::I& q) {
    return {V::bit_and(q, V::words(0x00ff)), V::template shift16<-8>(q)};
  }
  struct Dot {
    typename V::I sum;
    VEDETTE_INLINE void start(typename V::I first) { sum = first; }
    template <int j>
    VEDETTE_INLINE void add(const Weights& q, const std::byte* values) {
      V::add_words(sum, q.even, values);
      V::add_words(sum, q.odd, values + 4);
    }
    VEDETTE_INLINE typename V::I total() const { return sum; }
  };
};

template <class V>
using Rows16 = std::conditional_t<V::kDigits, DigitRows16<V>, WordRows16<V>>;

// Asks for the packed integers and scales kAhead groups on (tiles lie one behind the other, so of the next tile at a
// tile's end). With several rows the processor does not see far enough ahead by itself: memory and products would take
// turns.
template <class K>
VEDETTE_INLINE inline void prefetch_group(const TileView& view, const std::byte* planes, const std::byte* scales,
                                          int64_t group) {
  constexpr int64_t kAhead = 16;
  unroll<K::kGroupBytes / 64>([&](auto line)
                                  VEDETTE_INLINE { __builtin_prefetch(planes + kAhead * K::kGroupBytes + 64 * line); });
  if constexpr (K::kForm == ScaleForm::kPlain) {
    constexpr int64_t kBytes = 2 * kTileRows * (K::kOffset ? 2 : 1);
    __builtin_prefetch(scales + kBytes * ((group + kAhead) >> view.group_shift));
  } else {
    constexpr auto kRecord = static_cast<int64_t>(super_scale_bytes(K::kForm, K::kOffset, K::kStep));
    __builtin_prefetch(scales + kRecord * group / 8 + 2 * kRecord);
  }
}

// A group of a tile (lanes from first_lane on) as it is packed.
template <class V, class K>
struct PackedGroup {
  const TileView& view;
  const std::byte* planes;
  int64_t group;
  int first_lane;

  template <int j>
  VEDETTE_INLINE typename V::I factors() const {
    return unpack_factors<V, K, j>(planes);
  }
  VEDETTE_INLINE StepScales<V> scales(int part) const {
    return load_scales<V, K>(view, view.scales, group, part, first_lane);
  }
};

// The same made ready for many rows: packed steps of bytes, then of each part 16 scales and, with offsets, 16 offsets
// as floats, the very products that load_scales() makes.
template <class V, class K>
struct ReadyGroup {
  static constexpr int kIntegers = kGroup * kTileRows;
  static constexpr int kSide = 4 * kTileRows;
  static constexpr int kPartBytes = K::kOffset ? 2 * kSide : kSide;
  static constexpr int kBytes = kIntegers + K::kParts * kPartBytes;
  const std::byte* data;  // of the first lane

  template <int j>
  VEDETTE_INLINE typename V::I factors() const {
    return V::load(data + 64 * j);
  }
  VEDETTE_INLINE StepScales<V> scales(int part) const {
    const std::byte* at = data + kIntegers + part * kPartBytes;
    return {V::load_f32(at), K::kOffset ? V::load_f32(at + kSide) : V::zero()};
  }
};

template <class V, class K>
void ready_tile(const TileView& view, std::byte* out) {
  using Ready = ReadyGroup<V, K>;
  for (int64_t g = 0; g < view.groups; ++g) {
    const std::byte* planes = view.planes + g * K::kGroupBytes;
    prefetch_group<K>(view, planes, view.scales, g);
    for (int lane = 0; lane < kTileRows; lane += V::kLanes) {
      const PackedGroup<V, K> group = {view, planes + 4 * lane, g, lane};
      std::byte* to = out + g * Ready::kBytes + 4 * lane;
      unroll<8>([&](auto j) VEDETTE_INLINE { V::store(to + 64 * j, group.template factors<j>()); });
      unroll<K::kParts>([&](auto part) VEDETTE_INLINE {
        const StepScales<V> scales = group.scales(part);
        std::byte* at = to + Ready::kIntegers + part * Ready::kPartBytes;
        V::store(reinterpret_cast<float*>(at), scales.scale);
        if constexpr (K::kOffset) V::store(reinterpret_cast<float*>(at + Ready::kSide), scales.offset);
      });
    }
  }
}

// The canonical sums of kRows rows of the lanes from `lane` on; group(g) is their part of a group.
template <class V, class K, class Rows, int kRows, class Group>
VEDETTE_INLINE inline void exact_sums(int64_t groups, Group&& group_at, const std::byte* const* rows, float* result,
                                      int64_t result_stride) {
  typename V::F acc[kRows];
  VEDETTE_ROWS {
    acc[r] = V::zero();
  }
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t g = in_order<kRows>(i, groups);
    const auto group = group_at(g);
    const int64_t at = g * Rows::kRecord, behind = at + Rows::kValues;
    unroll<K::kParts>([&](auto part) VEDETTE_INLINE {
      typename Rows::Dot dot[kRows];
      VEDETTE_ROWS {
        dot[r].start(first_sum<V, K>(rows[r] + behind, part));
      }
      unroll<K::kSteps>([&](auto j) VEDETTE_INLINE {
        constexpr int kStep = part * K::kSteps + j;
        const auto q = Rows::split(group.template factors<kStep>());
        VEDETTE_ROWS {
          dot[r].template add<j>(q, rows[r] + at + kStep * Rows::kStepBytes);
        }
      });
      const StepScales<V> scales = group.scales(part);
      VEDETTE_ROWS {
        const std::byte* record = rows[r] + behind;
        acc[r] = accumulate<V, K>(acc[r], scales, dot[r].total(), record, record + kMinusSums + sum_offset<K>(part));
      }
    });
  }
  VEDETTE_ROWS {
    V::store(result + r * result_stride, acc[r]);
  }
}

template <class V, class K, class Rows, int kRows>
void integer_block_exact(const TileView& view, const std::byte* const* rows, float* result) {
  for (int lane = 0; lane < kTileRows; lane += V::kLanes) {
    const auto group = [&](int64_t g) VEDETTE_INLINE {
      const PackedGroup<V, K> at = {view, view.planes + g * K::kGroupBytes + 4 * lane, g, lane};
      if (lane == 0) prefetch_group<K>(view, at.planes, view.scales, g);
      return at;
    };
    exact_sums<V, K, Rows, kRows>(view.groups, group, rows, result + lane, kTileRows);
  }
}

// kWideBlock rows against tiles made ready, as WideKernel::run.
template <class V, class K, class Rows>
void ready_run(const TileView& view, const std::byte* bytes, int n_tiles, const std::byte* rows, size_t stride,
               float* result, int64_t result_stride) {
  static_assert(kWideBlock % V::kMaxRows == 0 && V::kLanes == kTileRows);
  using Ready = ReadyGroup<V, K>;
  for (int t = 0; t < n_tiles; ++t, bytes += view.groups * Ready::kBytes, result += kTileRows) {
    const auto group = [&](int64_t g) VEDETTE_INLINE { return Ready{bytes + g * Ready::kBytes}; };
    for (int first = 0; first < kWideBlock; first += V::kMaxRows) {
      const std::byte* block[V::kMaxRows];
      for (int r = 0; r < V::kMaxRows; ++r) block[r] = rows + static_cast<size_t>(first + r) * stride;
      exact_sums<V, K, Rows, V::kMaxRows>(view.groups, group, block, result + first * result_stride, result_stride);
    }
  }
}

// w = scale * (q - zero) + offset, one rounding; the four columns of a packed step, acc = fma(w, a, acc) in order.
template <class V, class K, int kRows, int kTiles>
void integer_block_f32(const TileView& view, const std::byte* const* rows, float* result) {
  using F = typename V::F;
  for (int lane = 0; lane < kTileRows; lane += V::kLanes) {
    F acc[kTiles][kRows];
    VEDETTE_TILES {
      VEDETTE_ROWS {
        acc[t][r] = V::zero();
      }
    }
    for (int64_t i = 0; i < view.groups; ++i) {
      const int64_t g = in_order<kRows>(i, view.groups);
      const std::byte* planes = view.planes + g * K::kGroupBytes + 4 * lane;
      unroll<K::kParts>([&](auto part) VEDETTE_INLINE {
        StepScales<V> scales[kTiles];
        VEDETTE_TILES {
          scales[t] = load_scales<V, K>(view, view.scales + t * view.scale_bytes, g, part, lane);
          if constexpr (K::kZeroShift != 0)
            scales[t].offset = V::mul(scales[t].scale, V::constant(static_cast<float>(1 << K::kZeroShift)));
        }
        unroll<K::kSteps>([&](auto j) VEDETTE_INLINE {
          constexpr int kStep = part * K::kSteps + j;
          typename V::I q[kTiles];
          VEDETTE_TILES {
            q[t] = unpack<V, K::kBits, kStep>(planes + t * view.plane_bytes);
          }
          unroll<4>([&](auto c) VEDETTE_INLINE {
            const int64_t at = 4 * (g * kGroup + 4 * kStep + c);
            VEDETTE_TILES {
              const F integer = V::to_float(V::bit_and(V::template shift32<-8 * c>(q[t]), V::dwords(0xff)));
              F weight;
              if constexpr (K::kOffset && K::kForm == ScaleForm::kPlain)
                weight = V::fma(scales[t].scale, integer, scales[t].offset);
              else if constexpr (K::kOffset || K::kZeroShift != 0)
                weight = V::fms(scales[t].scale, integer, scales[t].offset);
              else
                weight = V::mul(scales[t].scale, integer);
              VEDETTE_ROWS {
                V::add_product(acc[t][r], weight, rows[r] + at);
              }
            }
          });
        });
      });
    }
    VEDETTE_TILES {
      VEDETTE_ROWS {
        V::store(result + (t * kRows + r) * kTileRows + lane, acc[t][r]);
      }
    }
  }
}

template <class V, DType type, int kRows, int kTiles>
void float_block(const TileView& view, const std::byte* const* rows, float* result) {
  using F = typename V::F;
  for (int lane = 0; lane < kTileRows; lane += V::kLanes) {
    F acc[kTiles][kRows];
    VEDETTE_TILES {
      VEDETTE_ROWS {
        acc[t][r] = V::zero();
      }
    }
    for (int64_t i = 0; i < view.cols; ++i) {
      const int64_t k = in_order<kRows>(i, view.cols);
      VEDETTE_TILES {
        const F weight = load_side<V>(type, view.planes + t * view.plane_bytes, k * kTileRows + lane);
        VEDETTE_ROWS {
          V::add_product(acc[t][r], weight, rows[r] + 4 * k);
        }
      }
    }
    VEDETTE_TILES {
      VEDETTE_ROWS {
        V::store(result + (t * kRows + r) * kTileRows + lane, acc[t][r]);
      }
    }
  }
}

// More rows than V has registers for are several blocks: rows share no arithmetic.
template <class V, class K, Compute compute, int kRows>
void integer_block(const TileView& view, const std::byte* const* rows, float* result) {
  if constexpr (kRows > V::kMaxRows) {
    integer_block<V, K, compute, V::kMaxRows>(view, rows, result);
    integer_block<V, K, compute, kRows - V::kMaxRows>(view, rows + V::kMaxRows, result + V::kMaxRows * kTileRows);
  } else if constexpr (compute == Compute::kI8) {
    integer_block_exact<V, K, Rows8<V, K>, kRows>(view, rows, result);
  } else if constexpr (compute == Compute::kI16) {
    integer_block_exact<V, K, Rows16<V>, kRows>(view, rows, result);
  } else {
    integer_block_f32<V, K, kRows, 1>(view, rows, result);
  }
}

// Row counts without a kernel of their own take the next wider one.
constexpr void set_widths(KernelSet& set) {
  for (int n = kMaxRowBlock - 1; n > 0; --n)
    if (set.block[n - 1].rows == 0) set.block[n - 1] = set.block[n];
}

template <class V, class K, Compute compute>
constexpr void add_integer_kernels(KernelSet& set) {
  set.block[0] = {integer_block<V, K, compute, 1>, 1};
  set.block[3] = {integer_block<V, K, compute, 4>, 4};
  set.block[7] = {integer_block<V, K, compute, 8>, 8};
  if constexpr (compute != Compute::kF32) {
    set.block[1] = {integer_block<V, K, compute, 2>, 2};
    set.block[2] = {integer_block<V, K, compute, 3>, 3};
    set.block[5] = {integer_block<V, K, compute, 6>, 6};
  } else if constexpr (V::kMaxRows > 2) {
    set.run = integer_block_f32<V, K, 1, kTileRun>;
  }
  set_widths(set);
}

template <class V, class K>
constexpr void add_integer_kind(MatmulKernels& kernels, KernelKind kind) {
  KernelSet* set = kernels.set[static_cast<size_t>(kind)];
  add_integer_kernels<V, K, Compute::kI8>(set[0]);
  add_integer_kernels<V, K, Compute::kI16>(set[1]);
  add_integer_kernels<V, K, Compute::kF32>(set[2]);
}

template <class V, DType type>
constexpr void add_float_kind(MatmulKernels& kernels, KernelKind kind) {
  KernelSet& set = kernels.set[static_cast<size_t>(kind)][static_cast<size_t>(Compute::kF32)];
  set.block[0] = {float_block<V, type, 1, 1>, 1};
  set.block[1] = {float_block<V, type, 2, 1>, 2};
  set.block[3] = {float_block<V, type, 4, 1>, 4};
  set.block[7] = {float_block<V, type, 8, 1>, 8};
  set.run = float_block<V, type, 1, kTileRun>;
  set_widths(set);
}

// visit(kind, IntegerKind) for each integer scheme.
template <class Visit>
constexpr void for_integer_kinds(Visit visit) {
  using enum ScaleForm;
  visit(KernelKind::kQ4_0, IntegerKind<4, 32, false, 3, kPlain>{});
  visit(KernelKind::kQ5_0, IntegerKind<5, 32, false, 4, kPlain>{});
  visit(KernelKind::kQ8_0, IntegerKind<8, 32, false, 7, kPlain>{});
  visit(KernelKind::kQ2_K, IntegerKind<2, 16, true, 0, kSuperNibbles>{});
  visit(KernelKind::kQ3_K, IntegerKind<3, 16, false, 2, kSuperSigned>{});
  visit(KernelKind::kQ4_K, IntegerKind<4, 32, true, 0, kSuperUnsigned>{});
  visit(KernelKind::kQ5_K, IntegerKind<5, 32, true, 0, kSuperUnsigned>{});
  visit(KernelKind::kQ6_K, IntegerKind<6, 16, false, 5, kSuperSigned>{});
  visit(KernelKind::kPlain2, IntegerKind<2, 32, true, 0, kPlain>{});
  visit(KernelKind::kPlain3, IntegerKind<3, 32, true, 0, kPlain>{});
  visit(KernelKind::kPlain4, IntegerKind<4, 32, true, 0, kPlain>{});
  visit(KernelKind::kPlain5, IntegerKind<5, 32, true, 0, kPlain>{});
  visit(KernelKind::kPlain6, IntegerKind<6, 32, true, 0, kPlain>{});
  visit(KernelKind::kPlain8, IntegerKind<8, 32, true, 0, kPlain>{});
}

template <class V>
constexpr MatmulKernels kernel_table(decltype(MatmulKernels::prepare) prepare, decltype(MatmulKernels::round) round) {
  MatmulKernels table{};
  table.prepare = prepare;
  table.round = round;
  add_float_kind<V, DType::kF32>(table, KernelKind::kF32);
  add_float_kind<V, DType::kF16>(table, KernelKind::kF16);
  add_float_kind<V, DType::kBF16>(table, KernelKind::kBF16);
  for_integer_kinds([&](KernelKind kind, auto k) { add_integer_kind<V, decltype(k)>(table, kind); });
  return table;
}
