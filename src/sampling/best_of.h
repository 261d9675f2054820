// The k best of many items in one pass, without sorting them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sampling/numbers.h"
#include "sampling/scratch.h"

namespace vedette::sampling {

inline constexpr size_t kSelectSlack = 256;

// Room that select_best needs for k of `count` items.
inline size_t select_room(size_t k, size_t count) {
  return (k >= count ? count : std::min(2 * k + kSelectSlack, count)) + 1;
}

// Fills `best` with the k (at least 1) best of item(0) .. item(count - 1), in no order. Ids ascend; rank(item), found
// by the items' type, says how good one is, and of equals the lower id is better. What beats the k-th best known is
// collected; when the store is full it is cut to k.
template <typename Item, typename At>
void select_best(size_t count, size_t k, std::vector<Item>& best, At item) {
  const auto cut = [&] {
    std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k) - 1, best.end(),
                     [](const Item& a, const Item& b) { return better(a, b); });
    best.resize(k);
  };
  best.clear();
  float worst = 0;
  bool full = false;
  for (size_t i = 0; i < count; ++i) {
    const Item next = item(i);
    if (full && !(rank(next) > worst)) continue;  // an equal one has the higher id
    best.push_back(next);
    if (best.size() < 2 * k + kSelectSlack) continue;
    cut();
    worst = rank(best.back());
    full = true;
  }
  if (best.size() > k) cut();
}

// Removes all but the k best candidates. The scratch has select_room(k, vocabulary).
inline void keep_best(std::vector<Candidate>& candidates, size_t k, Scratch<Candidate>& scratch) {
  if (candidates.size() <= k) return;
  std::vector<Candidate>& best = scratch.items;
  select_best(candidates.size(), k, best, [&](size_t i) { return candidates[i]; });
  std::sort(best.begin(), best.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  candidates.assign(best.begin(), best.end());
}

}  // namespace vedette::sampling
