#include "cache/prefix_cache.h"

#include <algorithm>

#include "cache/prefix_tree.h"

namespace vedette::cache {
namespace {

constexpr size_t kBlock = static_cast<size_t>(ops::kBlockTokens);
constexpr size_t kExpectedTokens = 8;

std::span<const int32_t> block_at(std::span<const int32_t> ids, size_t index) {
  const std::span<const int32_t> rest = ids.subspan(index * kBlock);
  return rest.first(std::min(rest.size(), kBlock));
}

// The child used last among those that agree with `ids` for `common` tokens and go on.
const PrefixNode* last_used_child(const PrefixNode& node, std::span<const int32_t> ids, int64_t common) {
  const PrefixNode* best = nullptr;
  for (const auto& child : node.children)
    if (std::ssize(child->ids) > common && common_prefix(child->ids, ids) == common &&
        (best == nullptr || child->use > best->use))
      best = child.get();
  return best;
}

// Up to kExpectedTokens ids from offset `from` of the node on, along the path used last.
std::vector<int32_t> ids_from(const PrefixNode* node, int64_t from) {
  std::vector<int32_t> ids;
  while (node != nullptr) {
    for (size_t i = static_cast<size_t>(from); i < node->ids.size() && ids.size() < kExpectedTokens; ++i)
      ids.push_back(node->ids[i]);
    if (ids.size() == kExpectedTokens) break;
    node = last_used_child(*node, {}, 0);
    from = 0;
  }
  return ids;
}

// The walk of a prompt down the tree.
struct Walk {
  std::vector<PrefixNode*> path;       // whole blocks that agree
  int64_t matched = 0;                 // tokens
  const PrefixNode* parted = nullptr;  // has another token at `matched`
  int64_t held = 0;                    // nodes of the path that are held
};

}  // namespace

struct PrefixCache::Impl {
  Impl(KvCache& kv, int64_t most) : blocks(kv), tree(kv), max_tokens(most) {
    int64_t largest = 0;
    for (size_t group = 0; group < kv.n_groups(); ++group) largest = std::max(largest, kv.pool(group).total());
    most_nodes = 2 * largest + 1024;
  }

  Walk walk(std::string_view scope, std::span<const int32_t> ids) {
    Walk found;
    PrefixNode* node = tree.find_root(scope);
    if (node == nullptr) return found;
    for (size_t index = 0; index * kBlock < ids.size(); ++index) {
      const std::span<const int32_t> block = block_at(ids, index);
      // Children are sorted: the one that agrees longest stands next to where the block would.
      const size_t at = PrefixTree::lower_bound(*node, block);
      int64_t common = 0;
      for (size_t child = at > 0 ? at - 1 : at; child <= at && child < node->children.size(); ++child)
        common = std::max(common, common_prefix(node->children[child]->ids, block));
      found.matched += common;
      if (common < static_cast<int64_t>(kBlock)) {
        if (common < std::ssize(block)) found.parted = last_used_child(*node, block, common);
        break;
      }
      node = node->children[at].get();
      found.path.push_back(node);
      found.held += node->held;
    }
    return found;
  }

  // The deepest of the first `most` nodes at which every sliding group has its last window.
  int64_t deepest_usable(const Walk& found, int64_t most) {
    runs.assign(blocks.n_groups(), 0);
    int64_t best = 0;
    for (int64_t depth = 1; depth <= most; ++depth) {
      const PrefixNode& node = *found.path[static_cast<size_t>(depth - 1)];
      bool usable = true;
      for (size_t group = 0; group < blocks.n_groups(); ++group) {
        runs[group] = node.slots[group].block >= 0 ? runs[group] + 1 : 0;
        if (blocks.window(group) > 0)
          usable &= runs[group] >= depth - first_live_block(blocks.window(group), depth * ops::kBlockTokens);
      }
      if (usable) best = depth;
    }
    return best;
  }

  void refer(const Walk& found, int64_t depth, SequenceBlocks& sequence) {
    sequence.tables.resize(blocks.n_groups());
    for (size_t group = 0; group < blocks.n_groups(); ++group) {
      std::vector<int32_t>& table = sequence.tables[group];
      table.assign(static_cast<size_t>(depth), -1);
      const int64_t first = first_live_block(blocks.window(group), depth * ops::kBlockTokens);
      for (auto index = static_cast<size_t>(first); index < static_cast<size_t>(depth); ++index) {
        table[index] = found.path[index]->slots[group].block;
        blocks.pool(group).add_reference(table[index]);
      }
    }
  }

  // Makes room for one more block of tokens below the path that was used at `use`.
  bool within_bound(uint64_t use) {
    if (max_tokens <= 0) return true;
    while ((tree.held() + 1) * ops::kBlockTokens > max_tokens) {
      PrefixNode* leaf = tree.oldest_leaf(use);
      if (leaf == nullptr) return false;
      evict(*leaf);
    }
    return true;
  }

  void evict(PrefixNode& leaf) {
    tree.evict(leaf);
    ++stats.evictions;
  }

  void trim() {
    while (tree.nodes() > most_nodes) {
      if (PrefixNode* node = tree.oldest_forgettable())
        tree.forget(*node);
      else
        evict(*tree.oldest_leaf(0));
    }
  }

  void add_tail(PrefixNode& node, std::span<const int32_t> rest) {
    const size_t at = PrefixTree::lower_bound(node, rest);
    const bool known = at < node.children.size() && common_prefix(node.children[at]->ids, rest) == std::ssize(rest);
    if (!known) tree.add_child(node, rest);
  }

  void count() {
    stats.entries = tree.held();
    stats.tokens = tree.held() * ops::kBlockTokens;
  }

  KvCache& blocks;
  PrefixTree tree;
  const int64_t max_tokens;
  int64_t most_nodes = 0;
  uint64_t version = 0;
  PrefixCacheStats stats;
  std::vector<int64_t> runs;
};

PrefixCache::PrefixCache(KvCache& blocks, int64_t max_tokens) : impl_(std::make_unique<Impl>(blocks, max_tokens)) {}
PrefixCache::~PrefixCache() = default;

PrefixMatch PrefixCache::adopt(std::string_view scope, std::span<const int32_t> ids, SequenceBlocks& sequence) {
  const Walk found = impl_->walk(scope, ids);
  const int64_t usable = std::min(found.matched, std::ssize(ids) - 1) / ops::kBlockTokens;
  const int64_t held = std::min(usable, found.held);
  const int64_t depth = impl_->deepest_usable(found, held);

  const uint64_t use = impl_->tree.next_use();
  for (PrefixNode* node : found.path) impl_->tree.touch(*node, use);
  PrefixMatch match;
  match.matched = found.matched;
  match.tokens = depth * ops::kBlockTokens;
  if (depth > 0) {
    impl_->refer(found, depth, sequence);
    if (impl_->tree.slides())
      impl_->tree.take_snapshot(*found.path[static_cast<size_t>(depth - 1)], nullptr, Snapshot::kTurn, use);
  }
  ++(depth > 0 ? impl_->stats.hits : impl_->stats.misses);
  if (depth < usable) {
    match.reason = held < usable ? MissReason::kEvicted : MissReason::kWindow;
  } else if (found.matched == 0) {
    match.reason = MissReason::kCold;
  } else if (found.parted != nullptr) {
    match.reason = MissReason::kDiffers;
    match.expected = ids_from(found.parted, found.matched % ops::kBlockTokens);
  }
  return match;
}

void PrefixCache::insert(std::string_view scope, std::span<const int32_t> ids, SequenceBlocks& sequence,
                         Snapshot snapshot) {
  if (ids.empty()) return;
  PrefixTree& tree = impl_->tree;
  const uint64_t use = tree.next_use();
  PrefixNode* node = &tree.make_root(scope);
  const size_t whole = ids.size() / kBlock;
  bool bounded = false;
  for (size_t index = 0; index < whole && !bounded; ++index) {
    const std::span<const int32_t> block = block_at(ids, index);
    PrefixNode* child = tree.find_child(*node, block);
    if (child == nullptr) child = &tree.add_child(*node, block);
    tree.touch(*child, use);
    if (child->held) {
      tree.share(*child, sequence);
    } else if (impl_->within_bound(use)) {
      tree.hold(*child, sequence);
      ++impl_->version;
    } else {
      bounded = true;
    }
    node = child;
  }
  if (!bounded && whole * kBlock < ids.size()) impl_->add_tail(*node, block_at(ids, whole));
  if (node->held && snapshot != Snapshot::kNone && tree.slides())
    impl_->version += tree.take_snapshot(*node, &sequence, snapshot, use);
  impl_->trim();
  impl_->count();
}

bool PrefixCache::make_room(std::span<const int64_t> needed) {
  bool enough = true;
  for (size_t group = 0; group < needed.size(); ++group) {
    const BlockPool& pool = impl_->blocks.pool(group);
    while (pool.available() < needed[group]) {
      if (impl_->blocks.window(group) > 0) {
        PrefixNode* node = impl_->tree.oldest_free_snapshot(group);
        if (node == nullptr) break;
        impl_->tree.drop_snapshot(*node);
        ++impl_->stats.evictions;
      } else {
        PrefixNode* leaf = impl_->tree.oldest_free_leaf(group);
        if (leaf == nullptr) break;
        impl_->evict(*leaf);
      }
    }
    enough &= pool.available() >= needed[group];
  }
  impl_->count();
  return enough;
}

int64_t PrefixCache::evictable(size_t group) const {
  return impl_->blocks.pool(group).kept_alone();
}

void PrefixCache::clear() {
  impl_->tree.clear();
  impl_->count();
}

const PrefixCacheStats& PrefixCache::stats() const {
  return impl_->stats;
}

uint64_t PrefixCache::version() const {
  return impl_->version;
}

}  // namespace vedette::cache
