// Storage that links re-use from token to token.
#pragma once

#include <cstddef>
#include <vector>

namespace vedette::sampling {

// Holds nothing between two calls: a copy has the room, not the content.
template <typename T>
struct Scratch {
  explicit Scratch(size_t room) { items.reserve(room); }
  Scratch(const Scratch& other) { items.reserve(other.items.capacity()); }
  Scratch& operator=(const Scratch&) = delete;
  std::vector<T> items;
};

}  // namespace vedette::sampling
