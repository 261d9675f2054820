// When sequences take from the prefix cache and what they leave there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cache/kv_cache.h"
#include "cache/prefix_cache.h"
#include "engine/sequence.h"

namespace vedette::engine {

struct PrefixConfig {
  bool enabled = true;
  int64_t max_tokens = 0;       // 0: what the pools allow
  int snapshot_interval = 512;  // tokens between snapshots of sliding groups within a prompt
};

// Owned by the Runner; engine thread.
class PrefixSharing {
 public:
  PrefixSharing(cache::KvCache& blocks, const PrefixConfig& config);

  // Gives a waiting sequence what there is of its beginning. Looks again only where the cache has grown since.
  void look_up(Sequence& sequence);
  // The sequence waits on without it.
  void drop(Sequence& sequence);
  // It runs for the first time: what it got goes into its report.
  void admit(Sequence& sequence);
  // Where the next chunk has to end at the latest, so that a snapshot can be taken there; 0: anywhere.
  int64_t next_cut(const Sequence& sequence) const;
  // A chunk has been computed.
  void keep_chunk(Sequence& sequence);
  // The sequence is about to lose its K/V.
  void keep_all(Sequence& sequence);

  bool make_room(std::span<const int64_t> needed);
  void clear();
  cache::PrefixCacheStats stats() const;
  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

 private:
  bool applies(const Sequence& sequence) const { return prefixes_ && sequence.prefix.enabled; }
  void insert(Sequence& sequence, cache::Snapshot snapshot);

  cache::KvCache& blocks_;
  std::optional<cache::PrefixCache> prefixes_;
  int64_t interval_ = 0;
  bool slides_ = false;
  int64_t hits_ = 0, misses_ = 0;
};

}  // namespace vedette::engine
