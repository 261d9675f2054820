#include "ops/cpu/attention_plan.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace vedette::ops::cpu {
namespace {

const AttentionOperation& as_operation(const void* arguments) {
  return *static_cast<const AttentionOperation*>(arguments);
}

// Floats of a set of partial results of n pairs: values first, so that they stay aligned.
int64_t partial_floats(int64_t pairs, int value_stride) {
  return pairs * (value_stride + 2);
}

AttentionPartial partial_at(float* base, int64_t pairs, int64_t first, int value_stride) {
  float* largest = base + pairs * value_stride;
  return {largest + first, largest + pairs + first, base + first * value_stride};
}

struct Scratch {
  float* running;  // partial results of kMaxPairs pairs
  float* next;
  AttentionScratch call;
  int64_t floats;  // of all
};

Scratch cut_scratch(float* base, int head_dim, int value_stride) {
  int64_t used = 0;
  const auto take = [&](int64_t floats) {
    float* taken = base != nullptr ? base + used : nullptr;
    used += round_up<int64_t>(floats, 16);
    return taken;
  };
  Scratch scratch{};
  scratch.running = take(partial_floats(kMaxPairs, value_stride));
  scratch.next = take(partial_floats(kMaxPairs, value_stride));
  scratch.call.queries = take(round_up<int64_t>(head_dim, 16) * kMaxPairs);
  scratch.call.scores = take(int64_t{kMostTilePairs} * kSplitTokens);
  scratch.call.keys = take(int64_t{kSplitTokens} * head_dim);
  scratch.call.values = take(int64_t{kSplitTokens} * value_stride);
  scratch.floats = used;
  return scratch;
}

Scratch scratch_of(const AttentionOperation& o, int thread) {
  return cut_scratch(reinterpret_cast<float*>(o.scratch + thread * o.scratch_stride), o.layer.head_dim,
                     o.layer.value_stride);
}

// Cuts an item's rows and one K/V head's query heads into calls of at most kMaxPairs pairs. The pairs of a call are
// consecutive in (row, head) order; visit(rows, first row, first head, first pair).
template <typename Visit>
void for_calls(const AttentionOperation& o, const AttentionItem& item, int kv_head, Visit visit) {
  const int shared = o.n_heads / o.n_kv_heads;
  const int rows_per_call = std::max(1, kMaxPairs / shared);
  const int heads_per_call = std::min(shared, kMaxPairs);
  for (int row = 0; row < item.n_rows; row += rows_per_call) {
    for (int head = 0; head < shared; head += heads_per_call) {
      AttentionRows rows;
      rows.n_rows = std::min(rows_per_call, item.n_rows - row);
      rows.n_heads = std::min(heads_per_call, shared - head);
      const int first_head = kv_head * shared + head;
      rows.q = o.q.row(item.first_row + row) + static_cast<int64_t>(first_head) * o.layer.head_dim;
      rows.q_stride = o.q.stride;
      rows.first_position = item.first_position + row;
      rows.blocks = o.blocks[item.first_row];
      rows.kv_head = kv_head;
      rows.window = o.window;
      rows.scale = o.scale;
      rows.softcap = o.softcap;
      rows.wide = item.wide;
      visit(rows, item.first_row + row, first_head, static_cast<int64_t>(row) * shared + head);
    }
  }
}

// Folds all splits of a call in order and writes its rows.
void fold_call(const AttentionOperation& o, const AttentionRows& rows, int64_t first_row, int first_head,
               const Scratch& scratch) {
  const int stride = o.layer.value_stride;
  const int pairs = rows.n_rows * rows.n_heads;
  const AttentionPartial running = partial_at(scratch.running, kMaxPairs, 0, stride);
  const AttentionPartial next = partial_at(scratch.next, kMaxPairs, 0, stride);
  const int64_t begin = split_range(rows.first_position, rows.window).begin;
  const int64_t end = split_range(rows.first_position + rows.n_rows - 1, rows.window).end;
  o.kernels->attention_queries(rows, o.layer.head_dim, scratch.call.queries);
  for (int64_t split = begin; split < end; ++split) {
    // A row's first split goes straight to its running result. Whole calls whose rows all start here need no copy.
    const bool first_of_all = split == begin;
    o.kernels->attention_split(o.layer, rows, split, first_of_all ? running : next, scratch.call);
    if (first_of_all) continue;
    for (int p = 0; p < pairs; ++p) {
      const SplitRange own = split_range(rows.first_position + p / rows.n_heads, rows.window);
      if (split < own.begin || split >= own.end) continue;
      float* values = running.values + p * stride;
      const float* next_values = next.values + p * stride;
      if (split == own.begin) {
        running.largest[p] = next.largest[p];
        running.total[p] = next.total[p];
        std::memcpy(values, next_values, sizeof(float) * static_cast<size_t>(stride));
      } else {
        o.kernels->attention_merge(running.largest[p], running.total[p], values, next.largest[p], next.total[p],
                                   next_values, stride);
      }
    }
  }
  for (int p = 0; p < pairs; ++p) {
    float* out = o.out.row(first_row + p / rows.n_heads) +
                 static_cast<int64_t>(first_head + p % rows.n_heads) * o.layer.value_dim;
    o.kernels->attention_finish(running.values + p * stride, running.total[p], out, o.layer.value_dim);
  }
}

// Where a slot's partial results of one K/V head begin, and how many pairs they are.
struct SlotPartials {
  float* base;
  int64_t pairs;
};

SlotPartials slot_partials(const AttentionOperation& o, const AttentionSplitSlot& slot, int kv_head) {
  const int64_t shared = o.n_heads / o.n_kv_heads;
  const int64_t pairs = o.items[slot.item].n_rows * shared;
  const int64_t before = slot.first_pair * o.n_heads + kv_head * pairs;
  return {o.partials + partial_floats(before, o.layer.value_stride), pairs};
}

}  // namespace

int64_t attention_scratch_bytes(int head_dim, int value_stride) {
  return cut_scratch(nullptr, head_dim, value_stride).floats * static_cast<int64_t>(sizeof(float));
}

int64_t attention_partial_floats(const AttentionSplits& splits, int n_heads, int value_stride) {
  return partial_floats(splits.n_rows * n_heads, value_stride);
}

void build_items(const Step& step, std::vector<AttentionItem>& items, std::vector<int32_t>& item_of_row) {
  items.clear();
  item_of_row.resize(step.rows.size());
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const StepSequence& sequence = step.sequences[s];
    for (int32_t begin = 0; begin < sequence.n_rows; begin += AttentionItem::kRows) {
      AttentionItem item;
      item.sequence = static_cast<int32_t>(s);
      item.first_row = sequence.first_row + begin;
      item.n_rows = std::min<int32_t>(AttentionItem::kRows, sequence.n_rows - begin);
      item.first_position = step.rows[static_cast<size_t>(item.first_row)].position[0];
      item.wide = sequence.n_rows > 1;
      for (int32_t i = 0; i < item.n_rows; ++i) {
        item_of_row[static_cast<size_t>(item.first_row + i)] = static_cast<int32_t>(items.size());
      }
      items.push_back(item);
    }
  }
}

void build_splits(std::span<const AttentionItem> items, int window, AttentionSplits& splits) {
  splits.slots.clear();
  splits.first_slot.clear();
  splits.n_rows = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const AttentionItem& item = items[i];
    splits.first_slot.push_back(static_cast<int32_t>(splits.slots.size()));
    const int64_t begin = split_range(item.first_position, window).begin;
    const int64_t end = split_range(item.first_position + item.n_rows - 1, window).end;
    for (int64_t split = begin; split < end; ++split) {
      splits.slots.push_back({static_cast<int32_t>(i), split, splits.n_rows});
      splits.n_rows += item.n_rows;
    }
  }
}

int64_t attention_item_chunks(const AttentionOperation& o) {
  return o.n_items * o.n_kv_heads;
}

void run_attention_items(const void* arguments, int64_t chunk, int thread) {
  const AttentionOperation& o = as_operation(arguments);
  // All items of a K/V head in a row, so that its keys and values stay in the cache. The last rows of a prompt see the
  // most keys: they go first, so that the end of the operation is short chunks.
  const AttentionItem& item = o.items[o.n_items - 1 - chunk % o.n_items];
  const int kv_head = static_cast<int>(chunk / o.n_items);
  const Scratch scratch = scratch_of(o, thread);
  for_calls(o, item, kv_head, [&](const AttentionRows& rows, int64_t first_row, int first_head, int64_t) {
    fold_call(o, rows, first_row, first_head, scratch);
  });
}

int64_t attention_slot_chunks(const AttentionOperation& o) {
  return static_cast<int64_t>(o.splits->slots.size()) * o.n_kv_heads;
}

void run_attention_slots(const void* arguments, int64_t chunk, int thread) {
  const AttentionOperation& o = as_operation(arguments);
  const AttentionSplitSlot& slot = o.splits->slots[static_cast<size_t>(chunk / o.n_kv_heads)];
  const int kv_head = static_cast<int>(chunk % o.n_kv_heads);
  const SlotPartials partials = slot_partials(o, slot, kv_head);
  const Scratch scratch = scratch_of(o, thread);
  for_calls(o, o.items[slot.item], kv_head, [&](const AttentionRows& rows, int64_t, int, int64_t first_pair) {
    const AttentionPartial out = o.publishes
                                     ? partial_at(scratch.running, kMaxPairs, first_pair, o.layer.value_stride)
                                     : partial_at(partials.base, partials.pairs, first_pair, o.layer.value_stride);
    o.kernels->attention_queries(rows, o.layer.head_dim, scratch.call.queries);
    o.kernels->attention_split(o.layer, rows, slot.split, out, scratch.call);
  });
}

bool attention_may_publish(const AttentionOperation& o) {
  const int shared = o.n_heads / o.n_kv_heads;
  for (int64_t i = 0; i < o.n_items; ++i)
    if (o.items[i].n_rows * shared > kMaxPairs) return false;
  return true;
}

void publish_attention_slots(const void* arguments, int64_t chunk, int thread) {
  const AttentionOperation& o = as_operation(arguments);
  const AttentionSplitSlot& slot = o.splits->slots[static_cast<size_t>(chunk / o.n_kv_heads)];
  const SlotPartials partials = slot_partials(o, slot, static_cast<int>(chunk % o.n_kv_heads));
  const AttentionPartial from = partial_at(scratch_of(o, thread).running, kMaxPairs, 0, o.layer.value_stride);
  const AttentionPartial to = partial_at(partials.base, partials.pairs, 0, o.layer.value_stride);
  const auto pairs = static_cast<size_t>(partials.pairs);
  std::memcpy(to.largest, from.largest, sizeof(float) * pairs);
  std::memcpy(to.total, from.total, sizeof(float) * pairs);
  std::memcpy(to.values, from.values, sizeof(float) * pairs * static_cast<size_t>(o.layer.value_stride));
}

void run_attention_merge(const void* arguments, int64_t row, int thread) {
  const AttentionOperation& o = as_operation(arguments);
  const int32_t item_index = o.item_of_row[row];
  const AttentionItem& item = o.items[item_index];
  const int64_t local = row - item.first_row;
  const SplitRange own = split_range(item.first_position + local, o.window);
  const int64_t item_begin = split_range(item.first_position, o.window).begin;
  const AttentionSplitSlot* slots = o.splits->slots.data() + o.splits->first_slot[static_cast<size_t>(item_index)];
  const int shared = o.n_heads / o.n_kv_heads;
  const int stride = o.layer.value_stride;
  float* values = scratch_of(o, thread).running;
  for (int head = 0; head < o.n_heads; ++head) {
    float largest = 0, total = 0;
    for (int64_t split = own.begin; split < own.end; ++split) {
      const SlotPartials partials = slot_partials(o, slots[split - item_begin], head / shared);
      const AttentionPartial part = partial_at(partials.base, partials.pairs, local * shared + head % shared, stride);
      if (split == own.begin) {
        largest = *part.largest;
        total = *part.total;
        std::memcpy(values, part.values, sizeof(float) * static_cast<size_t>(stride));
      } else {
        o.kernels->attention_merge(largest, total, values, *part.largest, *part.total, part.values, stride);
      }
    }
    o.kernels->attention_finish(values, total, o.out.row(row) + static_cast<int64_t>(head) * o.layer.value_dim,
                                o.layer.value_dim);
  }
}

}  // namespace vedette::ops::cpu
