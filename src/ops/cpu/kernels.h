// The CPU kernels other than matrix products, one table per instruction set; all tables give the same bits.
//
// Every kernel is a pure function of its arguments and works on one row (attention: on rows of one K/V head), in an
// order that depends on that row alone. Reductions use 16 virtual lanes and one fixed tree (lanes_portable.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cpu/cpu_backend.h"
#include "ops/types.h"

namespace vedette::ops::cpu {

struct NormArguments {
  NormKind kind = NormKind::kRms;
  float eps = 0;
  const float* weight = nullptr;  // may be null
  const float* bias = nullptr;    // may be null
  int64_t cols = 0;
  int64_t group = 0;               // columns per norm; divides cols
  bool weight_per_column = false;  // weight and bias have `cols` elements, else `group`
};

struct RopeArguments {
  RopeKind kind = RopeKind::kNone;
  int rotary_dim = 0;
  const float* cos = nullptr;  // [rotary_dim / 2]
  const float* sin = nullptr;
};

// One layer of a K/V group in memory. Per block and K/V head: keys [head_dim][kBlockTokens], so that the scores of 16
// keys are one vector, then values [kBlockTokens][value_stride].
struct KvLayer {
  std::byte* data = nullptr;
  int64_t block_bytes = 0;  // from one block to the next
  int64_t head_bytes = 0;
  int64_t value_offset = 0;  // bytes from a head's keys to its values
  int head_dim = 0;
  int value_dim = 0;
  int value_stride = 0;  // value_dim rounded up to 16; what lies between is 0
  DType type = DType::kF16;
};

// Query rows of one sequence and the query heads that share one K/V head. A "pair" is (row, head), row-major.
struct AttentionRows {
  const float* q = nullptr;  // row 0, first of these heads
  int64_t q_stride = 0;      // floats from row to row
  int n_rows = 0;
  int n_heads = 0;
  int64_t first_position = 0;  // of row 0
  const int32_t* blocks = nullptr;
  int kv_head = 0;
  int window = 0;  // 0: full
  float scale = 1;
  float softcap = 0;
  bool wide = false;  // the step has several rows of this sequence (VEDETTE_BREAK_ROW_INVARIANCE only)
};

// Pairs that one call may hold: a multiple of every register tile's, and of the query heads that usually share one.
inline constexpr int kMaxPairs = 96;

// Scratch of one call.
struct AttentionScratch {
  float* queries = nullptr;  // [head_dim rounded up to 16, kMaxPairs], see attention_queries
  float* scores = nullptr;   // [kMostTilePairs, kSplitTokens]
  float* keys = nullptr;     // [kSplitTokens, head_dim]
  float* values = nullptr;   // [kSplitTokens, value_stride]
};
inline constexpr int kMostTilePairs = 12;

// Keys of a split folded for each pair: largest score, sum of exponentials, weighted values.
struct AttentionPartial {
  float* largest = nullptr;  // [pairs]
  float* total = nullptr;    // [pairs]
  float* values = nullptr;   // [pairs, value_stride]
};

struct Kernels {
  void (*norm)(const NormArguments& arguments, const float* in, float* out);
  void (*add_scaled)(float* inout, float scale, const float* addend, int64_t n);
  void (*scale)(float* inout, float scale, int64_t n);
  void (*clip)(float* inout, float limit, int64_t n);
  void (*activate)(Activation kind, const ActivationParams& params, const float* in, float* out, int64_t n);
  void (*gated_activation)(Activation kind, const float* gate, const float* up, float* out, int64_t n);
  void (*finish_logits)(float* inout, float scale, float softcap, int64_t n);
  void (*rope)(const RopeArguments& arguments, float* heads, int64_t n_heads, int64_t head_dim);
  // Writes one token's key and value of one K/V head into its block.
  void (*store_kv)(const KvLayer& layer, int32_t block, int kv_head, int token, const float* key, const float* value);
  // Scales the rows' queries and lays them out as attention_split wants them in AttentionScratch::queries.
  void (*attention_queries)(const AttentionRows& rows, int head_dim, float* queries);
  // Folds the keys of absolute split `split`; pairs whose row sees none of them are left untouched.
  void (*attention_split)(const KvLayer& layer, const AttentionRows& rows, int64_t split, const AttentionPartial& out,
                          const AttentionScratch& scratch);
  // into <- into merged with the next split's `from`, for one pair.
  void (*attention_merge)(float& largest, float& total, float* values, float next_largest, float next_total,
                          const float* next_values, int value_stride);
  // out [value_dim] = values / total.
  void (*attention_finish)(const float* values, float total, float* out, int value_dim);
};

// The splits that hold the keys a query at `position` sees.
struct SplitRange {
  int64_t begin = 0, end = 0;
};
constexpr int64_t first_key(int64_t position, int window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}
constexpr SplitRange split_range(int64_t position, int window) {
  return {first_key(position, window) / kSplitTokens, position / kSplitTokens + 1};
}

const Kernels& kernels_portable();
const Kernels& kernels_avx2();
const Kernels& kernels_avx512();
const Kernels& kernels_neon();
const Kernels& kernels_for(Isa isa);

}  // namespace vedette::ops::cpu
