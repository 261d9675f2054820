// The prefix cache: a radix tree over token ids whose nodes hold K/V blocks by reference.
//
// Blocks are shared whole: a prefix is re-used up to a multiple of kBlockTokens, so no shared block is ever written to.
// A group with full attention needs every block of the prefix; a sliding group only those that hold its last window of
// rows, kept as a snapshot at chosen depths. Requests of different scopes share nothing. Row invariance makes a cached
// block hold the very bits a cold run would write (docs/architecture.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/kv_cache.h"

namespace vedette::cache {

// Why less than the whole prompt was re-used.
enum class MissReason : uint8_t {
  kNone,     // all that whole blocks allow
  kCold,     // nothing of this scope begins like this
  kDiffers,  // an earlier prompt had other tokens at `matched`
  kEvicted,  // the tokens are known, their blocks were given up
  kWindow,   // no snapshot of a sliding group at that depth
};

struct PrefixMatch {
  int64_t tokens = 0;   // adopted: a multiple of kBlockTokens, less than the prompt
  int64_t matched = 0;  // the longest prefix of the prompt that was seen before, adopted or not
  MissReason reason = MissReason::kNone;
  std::vector<int32_t> expected;  // kDiffers: up to 8 ids that stood at `matched`, of the path used last
};

struct PrefixCacheStats {
  int64_t entries = 0;  // nodes whose blocks are held
  int64_t tokens = 0;   // tokens whose blocks of every full group are held
  int64_t hits = 0, misses = 0, evictions = 0;
};

// The last window of every sliding group at one depth.
enum class Snapshot : uint8_t {
  kNone,
  kLadder,  // on the way through a prompt: given up before any other
  kTurn,    // where a next prompt is expected to part from this one, or did
};

// Owner and thread: the engine thread. Must not outlive the KvCache.
class PrefixCache {
 public:
  // max_tokens: bound on PrefixCacheStats::tokens; 0: none but the pools.
  PrefixCache(KvCache& blocks, int64_t max_tokens);
  ~PrefixCache();

  // Gives `sequence` (which holds nothing) references to the blocks of the longest usable prefix of `ids`; at least the
  // last token is left to compute, since its logits are wanted. The path counts as used.
  PrefixMatch adopt(std::string_view scope, std::span<const int32_t> ids, SequenceBlocks& sequence);

  // The K/V of all of `ids` lies in the sequence's blocks: takes references to what is not held yet. Where the tree
  // holds the same tokens in other blocks of a full group, the sequence changes to those, which hold equal bits: so
  // whoever shares a node shares all nodes above it. A snapshot is taken at this depth rounded down to whole blocks,
  // and only if the sequence still holds those rows.
  void insert(std::string_view scope, std::span<const int32_t> ids, SequenceBlocks& sequence, Snapshot snapshot);

  // Gives up least recently used leaves and snapshots that no sequence shares until each group has needed[group] free
  // blocks; false where that cannot be reached (what could be freed is).
  bool make_room(std::span<const int64_t> needed);
  // Blocks that make_room could free.
  int64_t evictable(size_t group) const;

  void clear();
  const PrefixCacheStats& stats() const;
  // Grows whenever adopt() may find more than before.
  uint64_t version() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::cache
