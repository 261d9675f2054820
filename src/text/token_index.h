// Looks up a vocabulary entry by its text. Built once; reads allocate nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/rust_bridge.h"

namespace vedette::text {

// Borrows the texts, which must outlive it at the same address. Immutable after build(); any thread.
class TokenIndex {
 public:
  // Of several ids with one text the first is found. Empty texts are left out.
  void build(const PackedTexts& texts);
  int32_t find(std::string_view text) const;  // -1 if there is none
  // Id of an earlier entry with the text of `id`, or -1.
  int32_t duplicate_of(int32_t id) const;
  size_t longest() const { return longest_; }  // bytes of the longest entry

 private:
  const PackedTexts* texts_ = nullptr;
  std::vector<int32_t> slots_;  // open addressing, a power of two, -1 free
  size_t longest_ = 0;
};

}  // namespace vedette::text
