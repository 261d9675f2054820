#include "ops/cpu/kv_cache.h"

#include <sys/mman.h>

#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace vedette::ops::cpu {

Result<KvCache> KvCache::create(const KvGroupConfig& config) {
  constexpr int64_t kLargestDim = 1 << 16;
  const auto valid = [](int64_t n) { return n > 0 && n <= kLargestDim; };
  if (!valid(config.n_layers) || !valid(config.n_kv_heads) || !valid(config.head_dim) || !valid(config.value_dim) ||
      config.window < 0 || config.n_blocks <= 0 || config.n_blocks > std::numeric_limits<int32_t>::max()) {
    return unsupported(
        "", "K/V group: expected positive sizes up to {}, found {} layers, {} heads of {} and {}, {} blocks",
        kLargestDim, config.n_layers, config.n_kv_heads, config.head_dim, config.value_dim, config.n_blocks);
  }
  const int64_t element = static_cast<int64_t>(size_of(config.type));
  KvCache cache;
  cache.config_ = config;
  cache.first_.head_dim = config.head_dim;
  cache.first_.value_dim = config.value_dim;
  cache.first_.value_stride = static_cast<int>(round_up<int64_t>(config.value_dim, 16));
  cache.first_.type = config.type;
  cache.first_.value_offset = config.head_dim * kBlockTokens * element;
  cache.first_.head_bytes = cache.first_.value_offset + cache.first_.value_stride * kBlockTokens * element;
  cache.layer_bytes_ = cache.first_.head_bytes * config.n_kv_heads;
  const auto block_bytes = checked_mul<int64_t>(cache.layer_bytes_, config.n_layers);
  const auto bytes = block_bytes ? checked_mul<int64_t>(*block_bytes, config.n_blocks) : std::nullopt;
  if (!bytes) return unsupported("", "K/V group: {} blocks do not fit 64-bit sizes", config.n_blocks);
  void* data = mmap(nullptr, static_cast<size_t>(*bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return out_of_budget("", "K/V cache: the system refuses {} bytes for {} blocks of {} tokens; use a shorter context",
                         *bytes, config.n_blocks, kBlockTokens);
  }
  // Large pages save most of the address translation of a long context; a refusal costs nothing but that.
  madvise(data, static_cast<size_t>(*bytes), MADV_HUGEPAGE);
  cache.first_.block_bytes = *block_bytes;
  cache.bytes_ = *bytes;
  cache.data_ = static_cast<std::byte*>(data);
  return cache;
}

KvCache::KvCache(KvCache&& other) noexcept {
  *this = std::move(other);
}

KvCache& KvCache::operator=(KvCache&& other) noexcept {
  std::swap(config_, other.config_);
  std::swap(first_, other.first_);
  std::swap(layer_bytes_, other.layer_bytes_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

KvCache::~KvCache() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

KvLayer KvCache::layer(int index) const {
  KvLayer layer = first_;
  layer.data = data_ + index * layer_bytes_;
  return layer;
}

}  // namespace vedette::ops::cpu
