// Attention over one absolute split of the keys, for the (row, head) pairs that share a K/V head.
// Included once per instruction set (VEDETTE_ISA).
//
//   s[key] = softcap(scale * fma chain over d of q[d] k[key][d])          lanes are keys
//   m = max s,  p[key] = exp(max(s[key] - m, -87)),  l = sum of p in 16 lanes (key mod 16) and the fixed tree
//   o[d] = fma chain over keys in order of p[key] v[key][d]               lanes are value columns
// Splits are merged from the left:  m' = max(m, m2),  a = exp(m - m'),  b = exp(m2 - m'),
//   l' = fma(l2, b, l a),  o' = fma(o2, b, o a).
//
// Pairs are computed in register blocks, which only share loads: each pair's chains are its own. A key outside a
// row's range never enters a chain (its slot may hold anything), which is why ranges are cut exactly.
#pragma once

#include "ops/cpu/elementwise-inl.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/math-inl.h"

namespace vedette::ops::cpu::VEDETTE_ISA {

struct ElementF32 {
  using Type = float;
  static Lanes load(const float* p) { return VEDETTE_ISA::load(p); }
};
struct ElementF16 {
  using Type = uint16_t;
  static Lanes load(const uint16_t* p) { return load_f16(p); }
};
struct ElementBf16 {
  using Type = uint16_t;
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

template <typename Element>
struct SplitBlocks {
  const typename Element::Type* keys[kBlocksPerSplit];
  const typename Element::Type* values[kBlocksPerSplit];
};

// Chains of Pairs pairs against 16 * Vectors keys, in order of d.
template <typename Element, int Pairs, int Vectors>
inline void score_tile(const float* const* q, int head_dim, const typename Element::Type* keys,
                       [[maybe_unused]] const typename Element::Type* next, float* scores, [[maybe_unused]] bool wide) {
  Lanes chain[Pairs][Vectors];
#pragma GCC unroll 16
  for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) chain[p][v] = broadcast(0.0f);
  }
  for (int step = 0; step < head_dim; ++step) {
#ifdef VEDETTE_BREAK_ROW_INVARIANCE
    const int d = wide ? head_dim - 1 - step : step;
#else
    const int d = step;
#endif
    // With few pairs the tile waits for memory: ask for what follows.
    if constexpr (Pairs <= kFewPairs) __builtin_prefetch(next + d * kBlockTokens);
    Lanes key[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) key[v] = Element::load(keys + d * kBlockTokens + 16 * v);
#pragma GCC unroll 16
    for (int p = 0; p < Pairs; ++p) {
      const Lanes x = broadcast(q[p][d]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) chain[p][v] = fma(x, key[v], chain[p][v]);
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
  for (int i = 0; i < 16 * Vectors; i += kLine) __builtin_prefetch(row + i);
}

// Adds keys [begin, end) of the split to Pairs pairs' values, 16 * Vectors columns from `column`.
template <typename Element, int Pairs, int Vectors>
inline void value_tile(const SplitBlocks<Element>& blocks, const float* weights, int begin, int end, int column,
                       int stride, float* out) {
  Lanes chain[Pairs][Vectors];
#pragma GCC unroll 16
  for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) chain[p][v] = load(out + p * stride + column + 16 * v);
  }
  for (int key = begin; key < end;) {
    const int block_end = (key / kBlockTokens + 1) * kBlockTokens;
    const int stop = block_end < end ? block_end : end;
    const typename Element::Type* row =
        blocks.values[key / kBlockTokens] + static_cast<int64_t>(key % kBlockTokens) * stride + column;
    const typename Element::Type* next = stop < end ? blocks.values[stop / kBlockTokens] + column : row;
    for (; key < stop; ++key, row += stride, next += stride) {
      if constexpr (Pairs <= kFewPairs) prefetch_row<Vectors>(next);
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
  }
#pragma GCC unroll 16
  for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(out + p * stride + column + 16 * v, chain[p][v]);
  }
}

template <typename Element, int Pairs>
inline void add_values(const SplitBlocks<Element>& blocks, const float* weights, KeyRange keys, int stride,
                       float* out) {
  if (keys.empty()) return;
  constexpr int kVectors = Pairs <= kFewPairs ? kFewPairsValueVectors : kValueVectors;
  for_runs<kVectors>(stride / 16, [&](int first, auto vectors) {
    value_tile<Element, Pairs, decltype(vectors)::value>(blocks, weights, keys.begin, keys.end, 16 * first, stride,
                                                         out);
  });
}

// Turns raw dot products into weights; what the row does not see becomes 0. Returns the largest score.
inline float soften(const AttentionRows& rows, KeyRange keys, float* scores, float& total) {
  const int first = keys.begin / 16;
  const int last = (keys.end + 15) / 16;
  const float hidden = -__builtin_inff();
  Lanes top = broadcast(hidden);
  for (int i = first; i < last; ++i) {
    Lanes s = load(scores + 16 * i) * broadcast(rows.scale);
    if (rows.softcap > 0) s = soft_cap(s, rows.softcap);
    const int begin = keys.begin - 16 * i;
    const int end = keys.end - 16 * i;
    if (begin > 0 || end < 16) s = keep_range(s, begin > 0 ? begin : 0, end < 16 ? end : 16, hidden);
    store(scores + 16 * i, s);
    top = max(s, top);
  }
  const float m = largest(top);
  Lanes lanes = broadcast(0.0f);
  for (int i = first; i < last; ++i) {
    Lanes weight = exp_bounded(load(scores + 16 * i) - broadcast(m));
    const int begin = keys.begin - 16 * i;
    const int end = keys.end - 16 * i;
    if (begin > 0 || end < 16) weight = keep_range(weight, begin > 0 ? begin : 0, end < 16 ? end : 16, 0.0f);
    store(scores + 16 * i, weight);
    lanes = lanes + weight;
  }
  total = sum(lanes);
  return m;
}

struct SplitWork {
  int n_pairs = 0;
  const float* q[kMaxPairs];
  KeyRange keys[kMaxPairs];
};

inline SplitWork plan_split(const AttentionRows& rows, int head_dim, int64_t split) {
  SplitWork work;
  for (int row = 0; row < rows.n_rows; ++row) {
    const KeyRange keys = keys_of_row(rows, row, split);
    for (int head = 0; head < rows.n_heads; ++head) {
      work.q[work.n_pairs] = rows.q + row * rows.q_stride + static_cast<int64_t>(head) * head_dim;
      work.keys[work.n_pairs] = keys;
      ++work.n_pairs;
    }
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

template <typename Element>
inline void score_split(const KvLayer& layer, const AttentionRows& rows, const SplitWork& work,
                        const SplitBlocks<Element>& blocks, float* scores) {
  constexpr int kTileKeys = 16 * kScoreVectors;
  const KeyRange all = cover(work.keys, work.n_pairs);
  for (int key = all.begin / kTileKeys * kTileKeys; key < all.end; key += kTileKeys) {
    const int block = key / kBlockTokens;
    const typename Element::Type* keys = blocks.keys[block] + key % kBlockTokens;
    const typename Element::Type* next =
        (block + 1) * kBlockTokens < all.end ? blocks.keys[block + 1] : blocks.values[all.begin / kBlockTokens];
    for_runs<kScoreRows>(work.n_pairs, [&](int first, auto pairs) {
      constexpr int kPairs = decltype(pairs)::value;
      const KeyRange seen = cover(work.keys + first, kPairs);
      if (seen.end <= key || seen.begin >= key + kTileKeys) return;
      score_tile<Element, kPairs, kScoreVectors>(work.q + first, layer.head_dim, keys, next,
                                                 scores + first * kSplitTokens + key, rows.wide);
    });
  }
}

template <typename Element>
inline void fold_values(const KvLayer& layer, const SplitWork& work, const SplitBlocks<Element>& blocks,
                        const float* scores, float* values) {
  const int stride = layer.value_stride;
  for_runs<kValueRows>(work.n_pairs, [&](int first, auto pairs) {
    constexpr int kPairs = decltype(pairs)::value;
    const KeyRange* keys = work.keys + first;
    KeyRange common = keys[0];
    for (int p = 1; p < kPairs; ++p) {
      if (keys[p].begin > common.begin) common.begin = keys[p].begin;
      if (keys[p].end < common.end) common.end = keys[p].end;
    }
    const bool shared = !common.empty();
    const auto one = [&](int p, KeyRange range) {
      add_values<Element, 1>(blocks, scores + (first + p) * kSplitTokens, range, stride, values + (first + p) * stride);
    };
    for (int p = 0; p < kPairs; ++p) one(p, shared ? KeyRange{keys[p].begin, common.begin} : keys[p]);
    if (!shared) return;
    add_values<Element, kPairs>(blocks, scores + first * kSplitTokens, common, stride, values + first * stride);
    for (int p = 0; p < kPairs; ++p) one(p, {common.end, keys[p].end});
  });
}

template <typename Element>
inline void attention_split_of(const KvLayer& layer, const AttentionRows& rows, int64_t split,
                               const AttentionPartial& out, float* scores) {
  const SplitWork work = plan_split(rows, layer.head_dim, split);
  const KeyRange all = cover(work.keys, work.n_pairs);
  if (all.empty()) return;
  SplitBlocks<Element> blocks;
  for (int i = all.begin / kBlockTokens; i * kBlockTokens < all.end; ++i) {
    const std::byte* head =
        layer.data + rows.blocks[split * kBlocksPerSplit + i] * layer.block_bytes + rows.kv_head * layer.head_bytes;
    blocks.keys[i] = reinterpret_cast<const typename Element::Type*>(head);
    blocks.values[i] = reinterpret_cast<const typename Element::Type*>(head + layer.value_offset);
  }
  score_split<Element>(layer, rows, work, blocks, scores);
  for (int p = 0; p < work.n_pairs; ++p) {
    if (work.keys[p].empty()) continue;
    out.largest[p] = soften(rows, work.keys[p], scores + p * kSplitTokens, out.total[p]);
    for (int i = 0; i < layer.value_stride; i += 16) store(out.values + p * layer.value_stride + i, broadcast(0.0f));
  }
  fold_values<Element>(layer, work, blocks, scores, out.values);
}

inline void attention_split(const KvLayer& layer, const AttentionRows& rows, int64_t split, const AttentionPartial& out,
                            float* scores) {
  with_element(layer.type,
               [&](auto element) { attention_split_of<decltype(element)>(layer, rows, split, out, scores); });
}

inline void attention_merge(float& largest, float& total, float* values, float next_largest, float next_total,
                            const float* next_values, int value_stride) {
  const Lanes pair = max(broadcast(largest), broadcast(next_largest));
  const Lanes before = exp(broadcast(largest) - pair);
  const Lanes after = exp(broadcast(next_largest) - pair);
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
  map(values, out, value_dim, [&](Lanes x) { return x / broadcast(total); });
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
