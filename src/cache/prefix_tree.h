// The nodes of the prefix cache: one whole block of token ids each, and the orders in which they are given up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/prefix_cache.h"

namespace vedette::cache {

// A node's block of one group. Full groups: there as long as the node is held. Sliding groups: as long as a snapshot
// whose window covers the node claims it.
struct PrefixSlot {
  int32_t block = -1;
  int32_t claims = 0;
};

// A node that is not held still knows its tokens, so that a miss can be explained; such nodes are never above held
// ones.
struct PrefixNode {
  PrefixNode* parent = nullptr;        // none: the root of a scope
  const std::string* scope = nullptr;  // of a root
  std::vector<int32_t> ids;            // kBlockTokens; fewer: the tail of a text, never held
  int64_t depth = 0;                   // blocks from the root on, this one included
  bool held = false;
  int64_t held_children = 0;
  uint64_t use = 0;  // when the path through it was used last
  Snapshot snapshot = Snapshot::kNone;
  uint64_t snapshot_use = 0;
  std::vector<PrefixSlot> slots;                      // by group
  std::vector<std::unique_ptr<PrefixNode>> children;  // sorted by ids; none is a prefix of another
};

// How far the ids of two runs agree.
int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b);

// Owner: PrefixCache. Uses are distinct per operation, and one operation uses one path, so within each order below a
// use names one node.
class PrefixTree {
 public:
  explicit PrefixTree(KvCache& blocks);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  uint64_t next_use() { return ++last_use_; }
  PrefixNode* find_root(std::string_view scope);  // null: nothing of this scope
  PrefixNode& make_root(std::string_view scope);

  // Position of the first child that is not before `ids`.
  static size_t lower_bound(const PrefixNode& node, std::span<const int32_t> ids);
  PrefixNode* find_child(PrefixNode& node, std::span<const int32_t> ids);
  PrefixNode& add_child(PrefixNode& node, std::span<const int32_t> ids);
  void touch(PrefixNode& node, uint64_t use);

  // Takes references to the sequence's blocks of the full groups; the parent is held or a root.
  void hold(PrefixNode& node, const SequenceBlocks& sequence);
  // The sequence changes to the node's blocks of the full groups.
  void share(const PrefixNode& node, SequenceBlocks& sequence);
  // Claims the window that ends with a held node; what the tree lacks of it comes from `sequence`. False where the rows
  // are not there.
  bool take_snapshot(PrefixNode& node, const SequenceBlocks* sequence, Snapshot kind, uint64_t use);

  void drop_snapshot(PrefixNode& node);
  void evict(PrefixNode& leaf);   // held, no held child: gives up its blocks and its snapshot
  void forget(PrefixNode& leaf);  // not held, no child

  // The least recently used held leaf not used by `but`; null: none.
  PrefixNode* oldest_leaf(uint64_t but);
  // The least recently used held leaf whose block of a full group nobody else holds; null: none.
  PrefixNode* oldest_free_leaf(size_t group);
  // The snapshot of a sliding group to give up first of those that have a block nobody else holds; null: none.
  PrefixNode* oldest_free_snapshot(size_t group);
  PrefixNode* oldest_forgettable();

  void clear();
  bool slides() const { return slides_; }
  int64_t nodes() const { return nodes_; }
  int64_t held() const { return held_; }

 private:
  using Order = std::map<uint64_t, PrefixNode*>;
  void list(PrefixNode& node);
  void unlist(PrefixNode& node);
  Order& order_of(Snapshot kind) { return kind == Snapshot::kLadder ? ladder_ : turns_; }

  KvCache& blocks_;
  bool slides_ = false;  // some group does
  uint64_t last_use_ = 0;
  int64_t nodes_ = 0, held_ = 0;
  std::map<std::string, std::unique_ptr<PrefixNode>, std::less<>> roots_;
  Order held_leaves_, forgettable_;  // by use
  Order ladder_, turns_;             // snapshots, by snapshot_use
};

}  // namespace vedette::cache
