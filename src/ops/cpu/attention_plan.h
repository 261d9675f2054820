// How a step's attention is cut into chunks, and what runs them. The cut decides speed alone: each (row, head) folds
// its own splits in order, whether one chunk runs them all or each has a chunk of its own and a merge follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/program_stages.h"
#include "ops/step.h"

namespace vedette::ops::cpu {

// Up to kRows consecutive rows of one sequence.
struct AttentionItem {
  static constexpr int kRows = 48;
  int32_t sequence = 0;
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int64_t first_position = 0;
  bool wide = false;
};

// One item's partial results over one split, for every query head.
struct AttentionSplitSlot {
  int32_t item = 0;
  int64_t split = 0;
  int64_t first_pair = 0;  // pairs stored before this slot, per query head
};

// The cut for one K/V group and number of query heads. Rebuilt each step into the same memory.
struct AttentionSplits {
  std::vector<AttentionSplitSlot> slots;
  std::vector<int32_t> first_slot;  // per item
  int64_t n_rows = 0;               // rows of all slots
};

// Arguments of one attention operation; arrays belong to the back end and live as long as the step.
struct AttentionOperation {
  const Kernels* kernels = nullptr;
  KvLayer layer;
  Rows q, out;
  int n_heads = 0;
  int n_kv_heads = 0;
  int window = 0;
  float scale = 1;
  float softcap = 0;
  const AttentionItem* items = nullptr;
  int64_t n_items = 0;
  const int32_t* item_of_row = nullptr;
  const int32_t* const* blocks = nullptr;   // per row
  const AttentionSplits* splits = nullptr;  // null: a chunk runs all splits of an item
  float* partials = nullptr;                // [slot rows * n_heads, value_stride + 2]
  std::byte* scratch = nullptr;             // per thread
  int64_t scratch_stride = 0;
  bool publishes = false;  // run_attention_slots leaves its result in scratch
};

// Bytes of scratch per thread.
int64_t attention_scratch_bytes(int head_dim, int value_stride);
// Floats of AttentionOperation::partials.
int64_t attention_partial_floats(const AttentionSplits& splits, int n_heads, int value_stride);

void build_items(const Step& step, std::vector<AttentionItem>& items, std::vector<int32_t>& item_of_row);
void build_splits(std::span<const AttentionItem> items, int window, AttentionSplits& splits);

// Chunk = (item, K/V head), all splits, the finished output.
void run_attention_items(const void* arguments, int64_t chunk, int thread);
int64_t attention_item_chunks(const AttentionOperation& operation);
// Chunk = (slot, K/V head), one split.
void run_attention_slots(const void* arguments, int64_t chunk, int thread);
int64_t attention_slot_chunks(const AttentionOperation& operation);
// Whether a chunk's result fits the thread's scratch.
bool attention_may_publish(const AttentionOperation& operation);
void publish_attention_slots(const void* arguments, int64_t chunk, int thread);
// Row stage after run_attention_slots: merges a row's splits.
void run_attention_merge(const void* arguments, int64_t row, int thread);

}  // namespace vedette::ops::cpu
