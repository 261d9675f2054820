// The memory of one K/V group, laid out for the attention kernels (kernels.h, KvLayer). All layers of a block lie
// together, so that the huge pages that are taken are those of the blocks in use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/backend.h"
#include "ops/cpu/kernels.h"

namespace vedette::ops::cpu {

// Owned by the back end. Memory is mapped at once and committed by the system when first written; it starts as zeros,
// and no kernel lets a slot that was never written reach a result.
class KvCache {
 public:
  // Errors: kUnsupported (sizes that are not positive or overflow), kOutOfBudget (the mapping is refused).
  static Result<KvCache> create(const KvGroupConfig& config);
  KvCache(KvCache&& other) noexcept;
  KvCache& operator=(KvCache&& other) noexcept;
  ~KvCache();

  const KvGroupConfig& config() const { return config_; }
  int64_t bytes() const { return bytes_; }
  KvLayer layer(int index) const;

 private:
  KvCache() = default;
  KvGroupConfig config_;
  KvLayer first_;            // layer 0
  int64_t layer_bytes_ = 0;  // of one block
  int64_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace vedette::ops::cpu
