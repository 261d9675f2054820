// What keeps a checkpoint's bytes alive: mapped files and the few tensors that had to be converted.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mapped_file.h"

namespace vedette::weights {

// Filled while a checkpoint opens, then shared read-only through Checkpoint::storage.
struct Storage {
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::deque<std::vector<float>> converted;

  std::span<const std::byte> keep(std::vector<float> values) {
    return std::as_bytes(std::span<const float>(converted.emplace_back(std::move(values))));
  }

  // The same bytes at an address that is a multiple of `alignment` (at most 4): in place where they are, else copied.
  std::span<const std::byte> aligned(std::span<const std::byte> bytes, size_t alignment) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) return bytes;
    std::vector<float> copy((bytes.size() + sizeof(float) - 1) / sizeof(float));
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    return keep(std::move(copy)).first(bytes.size());
  }
};

}  // namespace vedette::weights
