// Memory of packed weights: large zeroed regions on huge pages, filled one matrix after another.
//
// Huge pages take a five-hundredth of the page faults while weights are packed and of the address translations while
// they are read, which single small matrices could not have.
#pragma once

#include <cstddef>
#include <vector>

namespace vedette::ops::cpu {

// Owned by the back end whose weights lie in it; they live as long. The loading thread only.
class WeightMemory {
 public:
  WeightMemory() = default;
  ~WeightMemory();
  WeightMemory(const WeightMemory&) = delete;
  WeightMemory& operator=(const WeightMemory&) = delete;

  // Zeroed, on a 64-byte boundary; null if the system has no memory.
  std::byte* allocate(size_t bytes);

 private:
  struct Region {
    std::byte* data = nullptr;
    size_t size = 0;
  };
  std::vector<Region> regions_;  // the last one has the free rest
  size_t used_ = 0;              // of the last one
};

}  // namespace vedette::ops::cpu
