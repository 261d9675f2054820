// Attention over one absolute split of the keys, for the (row, head) pairs that share a K/V head.
// Included once per instruction set (VEDETTE_ISA).
//
//   q'[d] = q[d] c,   c = scale log2 e                    (with a cap: scale / cap)
//   s[key] = fma chain over d of q'[d] k[key][d]          lanes are keys
//            (with a cap: s = (cap log2 e) tanh s)
//   m = max s,  p[key] = 2^max(s[key] - m, -125),  l = sum of p in 16 lanes (key mod 16) and the fixed tree
//   o[d] = fma chain over keys in order of p[key] v[key][d]               lanes are value columns
// Splits are merged from the left:  m' = max(m, m2),  a = 2^(m - m'),  b = 2^(m2 - m'),
//   l' = fma(l2, b, l a),  o' = fma(o2, b, o a),  and the result is o (1 / l).
// Scores are in powers of 2 and carry their factor from the query, so that a score costs its chain and one exp2.
//
// Pairs are computed in register blocks, which only share loads: each pair's chains are its own. A key outside a
// row's range never enters a chain (its slot may hold anything), which is why ranges are cut exactly.
// A block of pairs goes through scores, weights and values while its scores are in the first cache. With many pairs,
// keys and values are widened to float32 once for all of them (widening is exact), while the next split's are asked
// for.
#pragma once

#include "ops/cpu/elementwise-inl.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/math-inl.h"

namespace vedette::ops::cpu::VEDETTE_ISA {

inline void ask_for(const void* line) {
  __builtin_prefetch(line, 0, 2);
}

// kPrefetch: tiles ask for what follows. They ask the second cache for it: the first has too few misses in flight to
// keep memory busy (one Zen 4 core reads 22 GB/s of keys and values so, and 11.6 into the first cache).
struct ElementF32 {
  using Type = float;
  static constexpr bool kPrefetch = true;
  static Lanes load(const float* p) { return VEDETTE_ISA::load(p); }
};
// float32 in scratch.
struct ElementWidened : ElementF32 {
  static constexpr bool kPrefetch = false;
};
struct ElementF16 {
  using Type = uint16_t;
  static constexpr bool kPrefetch = true;
  static Lanes load(const uint16_t* p) { return load_f16(p); }
};
struct ElementBf16 {
  using Type = uint16_t;
  static constexpr bool kPrefetch = true;
  static Lanes load(const uint16_t* p) { return load_bf16(p); }
};

template <typename Visit>
inline void with_element(DType type, Visit visit) {
  switch (type) {
    case DType::kF32:
      return visit(ElementF32{});
    case DType::kF16:
      return visit(ElementF16{});
    case DType::kBF16:
      return visit(ElementBf16{});
  }
}

template <int N>
struct Constant {
  static constexpr int value = N;
};

// Cuts n items into runs of at most Largest and calls visit(first, Constant<size>).
template <int Largest, typename Visit>
inline void for_runs(int n, Visit visit) {
  int first = 0;
  for (; n - first >= Largest; first += Largest) visit(first, Constant<Largest>{});
  if constexpr (Largest > 1) {
    for_runs<(Largest > 4 ? 4 : Largest - 1)>(n - first, [&](int offset, auto size) { visit(first + offset, size); });
  }
}

// Keys of the split that a row sees, as offsets from the split's start.
struct KeyRange {
  int begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

inline KeyRange keys_of_row(const AttentionRows& rows, int row, int64_t split) {
  const int64_t position = rows.first_position + row;
  const int64_t base = split * kSplitTokens;
  const int64_t begin = first_key(position, rows.window) - base;
  const int64_t end = position + 1 - base;
  return {static_cast<int>(begin < 0 ? 0 : (begin > kSplitTokens ? kSplitTokens : begin)),
          static_cast<int>(end < 0 ? 0 : (end > kSplitTokens ? kSplitTokens : end))};
}

inline constexpr int kBlocksPerSplit = kSplitTokens / kBlockTokens;

// Asks for the keys and values of the split that follows, a share before each score tile.
struct NextSplit {
  const std::byte* blocks[kBlocksPerSplit];
  int n_blocks = 0;
  int block = 0;
  int64_t offset = 0;  // within the block
  int64_t block_bytes = 0;
  int64_t share = 0;

  void ask() {
    for (int64_t asked = 0; asked < share && block < n_blocks; asked += 64) {
      ask_for(blocks[block] + offset);
      offset += 64;
      if (offset < block_bytes) continue;
      offset = 0;
      ++block;
    }
  }
};

// A split's keys and values where they lie.
template <typename MemoryElement>
struct BlockSplit {
  using Element = MemoryElement;
  using Type = typename Element::Type;
  const Type* keys[kBlocksPerSplit];
  const Type* values[kBlocksPerSplit];
  int stride;  // of values

  void before_tile() const {}
  template <int Pairs>
  static constexpr int value_vectors() {
    return Pairs <= kFewPairs ? kFewPairsValueVectors : kValueVectors;
  }
  template <int Vectors>
  int64_t row_stride() const {
    return stride;
  }
  // The end of the rows that lie together with that of `key`.
  int run_end(int key) const { return (key / kBlockTokens + 1) * kBlockTokens; }
  template <int Vectors>
  const Type* row(int key, int vector) const {
    return values[key / kBlockTokens] + static_cast<int64_t>(key % kBlockTokens) * stride + 16 * vector;
  }
};

// Widened in scratch: keys as they were, values in strips of kValueVectors vectors (the last narrower) of columns.
struct WidenedSplit {
  using Element = ElementWidened;
  const float* keys[kBlocksPerSplit];
  const float* strips;
  NextSplit next;

  void before_tile() { next.ask(); }
  template <int Pairs>
  static constexpr int value_vectors() {
    return kValueVectors;
  }
  template <int Vectors>
  int64_t row_stride() const {
    return 16 * Vectors;
  }
  int run_end(int) const { return kSplitTokens; }
  template <int Vectors>
  const float* row(int key, int vector) const {
    return strips + 16 * vector * kSplitTokens + 16 * Vectors * key;
  }
};

// Queries of a call in scratch: element d of pair p at (d / 16 * kMaxPairs + p) * 16 + d % 16, so that the queries of
// neighbouring pairs lie at fixed distances and in few cache lines.
inline constexpr int64_t kQueryStep = int64_t{kMaxPairs} * 16;

// Chains of Pairs pairs against 16 * Vectors keys, in order of d.
template <typename Element, int Pairs, int Vectors>
inline void score_tile(const float* queries, int head_dim, const typename Element::Type* keys,
                       [[maybe_unused]] const typename Element::Type* next, float* scores, [[maybe_unused]] bool wide) {
  Lanes chain[Pairs][Vectors];
#pragma GCC unroll 16
  for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) chain[p][v] = broadcast(0.0f);
  }
  for (int begin = 0; begin < head_dim; begin += 16) {
    const int end = begin + 16 < head_dim ? begin + 16 : head_dim;
    for (int step = begin; step < end; ++step) {
#ifdef VEDETTE_BREAK_ROW_INVARIANCE
      const int d = wide ? head_dim - 1 - step : step;
      const float* x = queries + d / 16 * kQueryStep + d % 16;
#else
      const int d = step;
      const float* x = queries + begin * kMaxPairs + (d - begin);
#endif
      if constexpr (Element::kPrefetch) ask_for(next + d * kBlockTokens);
      Lanes key[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) key[v] = Element::load(keys + d * kBlockTokens + 16 * v);
#pragma GCC unroll 16
      for (int p = 0; p < Pairs; ++p) {
        const Lanes query = broadcast(x[16 * p]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) chain[p][v] = fma(query, key[v], chain[p][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(scores + p * kSplitTokens + 16 * v, chain[p][v]);
  }
}

// Asks for 16 * Vectors elements.
template <int Vectors, typename Type>
inline void prefetch_row(const Type* row) {
  constexpr int kLine = 64 / sizeof(Type);
  for (int i = 0; i < 16 * Vectors; i += kLine) ask_for(row + i);
}

// Adds n keys to 16 * Vectors columns of Pairs pairs' values. Rows lie row_stride apart, and as many that follow are
// at next.
template <typename Element, int Pairs, int Vectors>
inline void value_tile(const typename Element::Type* row, int64_t row_stride,
                       [[maybe_unused]] const typename Element::Type* next, const float* weights, int n, float* out,
                       int out_stride) {
  Lanes chain[Pairs][Vectors];
#pragma GCC unroll 16
  for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) chain[p][v] = load(out + p * out_stride + 16 * v);
  }
  for (int key = 0; key < n; ++key, row += row_stride) {
    if constexpr (Element::kPrefetch) {
      prefetch_row<Vectors>(next);
      next += row_stride;
    }
    Lanes value[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) value[v] = Element::load(row + 16 * v);
#pragma GCC unroll 16
    for (int p = 0; p < Pairs; ++p) {
      const Lanes weight = broadcast(weights[p * kSplitTokens + key]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) chain[p][v] = fma(weight, value[v], chain[p][v]);
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(out + p * out_stride + 16 * v, chain[p][v]);
  }
}

// Calls visit(vector, first lane, end lane) for each vector of 16 keys that holds keys of the range.
template <typename Visit>
inline void for_key_vectors(KeyRange keys, Visit visit) {
  for (int i = keys.begin / 16; i < (keys.end + 15) / 16; ++i) {
    const int begin = keys.begin - 16 * i;
    const int end = keys.end - 16 * i;
    visit(i, begin > 0 ? begin : 0, end < 16 ? end : 16);
  }
}

inline Lanes keep_lanes(Lanes x, int begin, int end, float other) {
  return begin > 0 || end < 16 ? keep_range(x, begin, end, other) : x;
}

// Turns chains into weights; what the row does not see becomes 0. Returns the largest score.
inline float soften(float softcap, KeyRange keys, float* scores, float& total) {
  const float hidden = -__builtin_inff();
  Lanes top = broadcast(hidden);
  if (softcap > 0) {
    const Lanes factor = broadcast(softcap * kLog2E);
    for_key_vectors(keys, [&](int i, int, int) { store(scores + 16 * i, factor * tanh(load(scores + 16 * i))); });
  }
  for_key_vectors(
      keys, [&](int i, int begin, int end) { top = max(keep_lanes(load(scores + 16 * i), begin, end, hidden), top); });
  const float m = largest(top);
  Lanes lanes = broadcast(0.0f);
  for_key_vectors(keys, [&](int i, int begin, int end) {
    const Lanes weight = keep_lanes(exp2_bounded(load(scores + 16 * i) - broadcast(m)), begin, end, 0.0f);
    store(scores + 16 * i, weight);
    lanes = lanes + weight;
  });
  total = sum(lanes);
  return m;
}

struct SplitWork {
  int n_pairs = 0;
  KeyRange keys[kMaxPairs];
};

static_assert(kTilePairs <= kMostTilePairs);

inline SplitWork plan_split(const AttentionRows& rows, int64_t split) {
  SplitWork work;
  for (int row = 0; row < rows.n_rows; ++row) {
    const KeyRange keys = keys_of_row(rows, row, split);
    for (int head = 0; head < rows.n_heads; ++head) work.keys[work.n_pairs++] = keys;
  }
  return work;
}

// The smallest range that holds the ranges of `count` pairs.
inline KeyRange cover(const KeyRange* keys, int count) {
  KeyRange all{kSplitTokens, 0};
  for (int i = 0; i < count; ++i) {
    if (keys[i].empty()) continue;
    if (keys[i].begin < all.begin) all.begin = keys[i].begin;
    if (keys[i].end > all.end) all.end = keys[i].end;
  }
  return all;
}

// Keys that all of `count` pairs see.
inline KeyRange intersection(const KeyRange* keys, int count) {
  KeyRange common = keys[0];
  for (int i = 1; i < count; ++i) {
    if (keys[i].begin > common.begin) common.begin = keys[i].begin;
    if (keys[i].end < common.end) common.end = keys[i].end;
  }
  return common;
}

// Where the keys of one block begin; the values follow.
inline const std::byte* find_block(const KvLayer& layer, const AttentionRows& rows, int64_t block) {
  return layer.data + rows.blocks[block] * layer.block_bytes + rows.kv_head * layer.head_bytes;
}

template <typename Element>
inline BlockSplit<Element> find_blocks(const KvLayer& layer, const AttentionRows& rows, int64_t split, KeyRange all) {
  BlockSplit<Element> found;
  found.stride = layer.value_stride;
  for (int i = all.begin / kBlockTokens; i * kBlockTokens < all.end; ++i) {
    const std::byte* head = find_block(layer, rows, split * kBlocksPerSplit + i);
    found.keys[i] = reinterpret_cast<const typename Element::Type*>(head);
    found.values[i] = reinterpret_cast<const typename Element::Type*>(head + layer.value_offset);
  }
  return found;
}

// What of `split` the rows see, to be asked for in n_tiles shares.
inline NextSplit find_next(const KvLayer& layer, const AttentionRows& rows, int64_t split, int n_tiles) {
  NextSplit next;
  next.block_bytes = layer.head_bytes;
  const int64_t seen = (rows.first_position + rows.n_rows - 1) / kBlockTokens + 1 - split * kBlocksPerSplit;
  for (; next.n_blocks < kBlocksPerSplit && next.n_blocks < seen; ++next.n_blocks) {
    next.blocks[next.n_blocks] = find_block(layer, rows, split * kBlocksPerSplit + next.n_blocks);
  }
  next.share = next.n_blocks * next.block_bytes / n_tiles;
  return next;
}

template <typename Element>
inline WidenedSplit widen(const BlockSplit<Element>& from, const KvLayer& layer, KeyRange all,
                          const AttentionScratch& scratch) {
  WidenedSplit to;
  to.strips = scratch.values;
  const int block_elements = layer.head_dim * kBlockTokens;
  for (int block = all.begin / kBlockTokens; block * kBlockTokens < all.end; ++block) {
    float* keys = scratch.keys + block * block_elements;
    to.keys[block] = keys;
    for (int i = 0; i < block_elements; i += 16) store(keys + i, Element::load(from.keys[block] + i));
  }
  for (int key = all.begin; key < all.end; ++key) {
    const typename Element::Type* row = from.template row<1>(key, 0);
    for_runs<kValueVectors>(layer.value_stride / 16, [&](int vector, auto vectors) {
      constexpr int kVectors = decltype(vectors)::value;
      float* out = scratch.values + 16 * vector * kSplitTokens + 16 * kVectors * key;
      for (int v = 0; v < kVectors; ++v) store(out + 16 * v, Element::load(row + 16 * (vector + v)));
    });
  }
  return to;
}

// Scores of Pairs pairs for the blocks that any of them sees.
template <int Pairs, typename Split>
inline void score_pairs(const AttentionRows& rows, int head_dim, const KeyRange* keys, Split& split,
                        const float* queries, float* scores) {
  constexpr int kTileKeys = 16 * kScoreVectors;
  const KeyRange seen = cover(keys, Pairs);
  for (int key = seen.begin / kTileKeys * kTileKeys; key < seen.end; key += kTileKeys) {
    split.before_tile();
    const int block = key / kBlockTokens;
    const auto* next =
        (block + 1) * kBlockTokens < seen.end ? split.keys[block + 1] : split.template row<1>(seen.begin, 0);
    score_tile<typename Split::Element, Pairs, kScoreVectors>(queries, head_dim, split.keys[block] + key % kBlockTokens,
                                                              next, scores + key, rows.wide);
  }
}

// Adds `keys`, which all Pairs pairs see: one block's rows after another's, so that memory is read in order.
template <int Pairs, typename Split>
inline void add_values(const Split& split, const float* weights, KeyRange keys, int stride, float* out) {
  for (int key = keys.begin; key < keys.end;) {
    const int run_end = split.run_end(key);
    const int stop = run_end < keys.end ? run_end : keys.end;
    for_runs<Split::template value_vectors<Pairs>()>(stride / 16, [&](int vector, auto vectors) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto* row = split.template row<kVectors>(key, vector);
      const auto* next = stop < keys.end ? split.template row<kVectors>(stop, vector) : row;
      value_tile<typename Split::Element, Pairs, kVectors>(row, split.template row_stride<kVectors>(), next,
                                                           weights + key, stop - key, out + 16 * vector, stride);
    });
    key = stop;
  }
}

// Values of Pairs pairs, each meeting the keys of its range in order: those that all see together, before and after
// them those of each row.
template <int Pairs, typename Split>
inline void fold_values(const Split& split, const KeyRange* keys, const float* weights, int stride, float* out) {
  const KeyRange common = intersection(keys, Pairs);
  const bool shared = !common.empty();
  const auto rest = [&](auto range_of) {
    for (int p = 0; p < Pairs;) {
      int same = p + 1;
      while (same < Pairs && keys[same].begin == keys[p].begin && keys[same].end == keys[p].end) ++same;
      const KeyRange range = range_of(keys[p]);
      if (!range.empty()) {
        for_runs<(Pairs < 4 ? Pairs : 4)>(same - p, [&](int offset, auto pairs) {
          const int first = p + offset;
          add_values<decltype(pairs)::value>(split, weights + first * kSplitTokens, range, stride,
                                             out + first * stride);
        });
      }
      p = same;
    }
  };
  rest([&](KeyRange own) { return shared ? KeyRange{own.begin, common.begin} : own; });
  if (!shared) return;
  add_values<Pairs>(split, weights, common, stride, out);
  rest([&](KeyRange own) { return KeyRange{common.end, own.end}; });
}

template <typename Split>
inline void fold_split(const KvLayer& layer, const AttentionRows& rows, const SplitWork& work, Split split,
                       const AttentionPartial& out, const AttentionScratch& scratch) {
  const int stride = layer.value_stride;
  for_runs<kTilePairs>(work.n_pairs, [&](int first, auto pairs) {
    constexpr int kPairs = decltype(pairs)::value;
    const KeyRange* keys = work.keys + first;
    if (cover(keys, kPairs).empty()) return;
    score_pairs<kPairs>(rows, layer.head_dim, keys, split, scratch.queries + 16 * first, scratch.scores);
    for (int p = 0; p < kPairs; ++p) {
      if (keys[p].empty()) continue;
      out.largest[first + p] = soften(rows.softcap, keys[p], scratch.scores + p * kSplitTokens, out.total[first + p]);
      float* values = out.values + (first + p) * stride;
      for (int i = 0; i < stride; i += 16) store(values + i, broadcast(0.0f));
    }
    fold_values<kPairs>(split, keys, scratch.scores, stride, out.values + first * stride);
  });
}

template <typename Element>
inline void attention_split_of(const KvLayer& layer, const AttentionRows& rows, int64_t split,
                               const AttentionPartial& out, const AttentionScratch& scratch) {
  const SplitWork work = plan_split(rows, split);
  const KeyRange all = cover(work.keys, work.n_pairs);
  if (all.empty()) return;
  const BlockSplit<Element> blocks = find_blocks<Element>(layer, rows, split, all);
  // Below a few tiles of pairs the pass that widens costs more than it saves.
  if (work.n_pairs > 2 * kTilePairs) {
    WidenedSplit widened = widen(blocks, layer, all, scratch);
    const int n_tiles = (work.n_pairs + kTilePairs - 1) / kTilePairs * (kSplitTokens / (16 * kScoreVectors));
    widened.next = find_next(layer, rows, split + 1, n_tiles);
    fold_split(layer, rows, work, widened, out, scratch);
  } else {
    fold_split(layer, rows, work, blocks, out, scratch);
  }
}

inline void attention_split(const KvLayer& layer, const AttentionRows& rows, int64_t split, const AttentionPartial& out,
                            const AttentionScratch& scratch) {
  with_element(layer.type,
               [&](auto element) { attention_split_of<decltype(element)>(layer, rows, split, out, scratch); });
}

inline void attention_queries(const AttentionRows& rows, int head_dim, float* queries) {
  const Lanes factor = broadcast(rows.softcap > 0 ? rows.scale / rows.softcap : rows.scale * kLog2E);
  for (int row = 0; row < rows.n_rows; ++row) {
    for (int head = 0; head < rows.n_heads; ++head) {
      const float* q = rows.q + row * rows.q_stride + static_cast<int64_t>(head) * head_dim;
      float* out = queries + 16 * (row * rows.n_heads + head);
      for_lanes(head_dim,
                [&](int64_t i, int lanes) { store(out + i / 16 * kQueryStep, load_lanes(q + i, lanes) * factor); });
    }
  }
}

inline void attention_merge(float& largest, float& total, float* values, float next_largest, float next_total,
                            const float* next_values, int value_stride) {
  const Lanes pair = max(broadcast(largest), broadcast(next_largest));
  const Lanes before = exp2_bounded(broadcast(largest) - pair);
  const Lanes after = exp2_bounded(broadcast(next_largest) - pair);
  float lanes[16];
  store(lanes, fma(broadcast(next_total), after, broadcast(total) * before));
  total = lanes[0];
  store(lanes, pair);
  largest = lanes[0];
  for (int i = 0; i < value_stride; i += 16) {
    store(values + i, fma(load(next_values + i), after, load(values + i) * before));
  }
}

inline void attention_finish(const float* values, float total, float* out, int value_dim) {
  const Lanes factor = broadcast(1.0f / total);
  map(values, out, value_dim, [&](Lanes x) { return x * factor; });
}

// Narrows n values for storage.
inline void store_elements(DType type, const float* in, int n, std::byte* out) {
  for_lanes(n, [&](int64_t i, int lanes) {
    const Lanes x = load_lanes(in + i, lanes);
    if (type == DType::kF32) {
      store(reinterpret_cast<float*>(out) + i, x);
    } else if (type == DType::kF16) {
      store_f16(reinterpret_cast<uint16_t*>(out) + i, x);
    } else {
      store_bf16(reinterpret_cast<uint16_t*>(out) + i, x);
    }
  });
}

template <typename Type>
inline void store_key(const float* key, DType type, int head_dim, Type* column) {
  alignas(64) Type part[16];
  for_lanes(head_dim, [&](int64_t i, int lanes) {
    store_elements(type, key + i, lanes, reinterpret_cast<std::byte*>(part));
    for (int d = 0; d < lanes; ++d) column[(i + d) * kBlockTokens] = part[d];
  });
}

inline void store_kv(const KvLayer& layer, int32_t block, int kv_head, int token, const float* key,
                     const float* value) {
  std::byte* head = layer.data + block * layer.block_bytes + kv_head * layer.head_bytes;
  const int element = layer.type == DType::kF32 ? 4 : 2;
  std::byte* values = head + layer.value_offset + static_cast<int64_t>(token) * layer.value_stride * element;
  if (layer.type == DType::kF32) {
    store_key(key, layer.type, layer.head_dim, reinterpret_cast<float*>(head) + token);
  } else {
    store_key(key, layer.type, layer.head_dim, reinterpret_cast<uint16_t*>(head) + token);
  }
  store_elements(layer.type, value, layer.value_dim, values);
}

}  // namespace vedette::ops::cpu::VEDETTE_ISA
