#include "text/token_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vedette::text {
namespace {

// Eight bytes a step, each mixed by a multiplication (constants of splitmix64).
uint64_t hash(std::string_view text) {
  uint64_t state = text.size() * 0x9e3779b97f4a7c15u;
  while (!text.empty()) {
    const size_t n = std::min<size_t>(8, text.size());
    uint64_t word = 0;
    std::memcpy(&word, text.data(), n);
    state = (state ^ word) * 0xbf58476d1ce4e5b9u;
    state ^= state >> 29;
    text.remove_prefix(n);
  }
  state *= 0x94d049bb133111ebu;
  return state ^ (state >> 31);
}

}  // namespace

void TokenIndex::build(const PackedTexts& texts) {
  texts_ = &texts;
  slots_.assign(std::bit_ceil(texts.size() * 2 + 2), -1);
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < texts.size(); ++id) {
    const std::string_view text = texts[id];
    if (text.empty()) continue;
    longest_ = std::max(longest_, text.size());
    size_t at = hash(text) & mask;
    while (slots_[at] >= 0 && texts[static_cast<size_t>(slots_[at])] != text) at = (at + 1) & mask;
    if (slots_[at] < 0) slots_[at] = static_cast<int32_t>(id);
  }
}

int32_t TokenIndex::find(std::string_view text) const {
  if (text.empty() || text.size() > longest_) return -1;
  const size_t mask = slots_.size() - 1;
  size_t at = hash(text) & mask;
  while (slots_[at] >= 0) {
    if ((*texts_)[static_cast<size_t>(slots_[at])] == text) return slots_[at];
    at = (at + 1) & mask;
  }
  return -1;
}

int32_t TokenIndex::duplicate_of(int32_t id) const {
  const int32_t first = find((*texts_)[static_cast<size_t>(id)]);
  return first == id ? -1 : first;
}

}  // namespace vedette::text
