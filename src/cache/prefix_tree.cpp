#include "cache/prefix_tree.h"

#include <algorithm>

namespace vedette::cache {
namespace {

bool is_full(int window) {
  return window <= 0;
}

}  // namespace

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first - a.begin();
}

PrefixTree::PrefixTree(KvCache& blocks) : blocks_(blocks) {
  for (size_t group = 0; group < blocks.n_groups(); ++group) slides_ |= !is_full(blocks.window(group));
}

PrefixTree::~PrefixTree() {
  clear();
}

PrefixNode* PrefixTree::find_root(std::string_view scope) {
  const auto root = roots_.find(scope);
  return root == roots_.end() ? nullptr : root->second.get();
}

PrefixNode& PrefixTree::make_root(std::string_view scope) {
  if (PrefixNode* root = find_root(scope)) return *root;
  const auto entry = roots_.emplace(std::string(scope), std::make_unique<PrefixNode>()).first;
  entry->second->scope = &entry->first;
  return *entry->second;
}

size_t PrefixTree::lower_bound(const PrefixNode& node, std::span<const int32_t> ids) {
  const auto found = std::lower_bound(
      node.children.begin(), node.children.end(), ids, [](const auto& child, std::span<const int32_t> wanted) {
        return std::lexicographical_compare(child->ids.begin(), child->ids.end(), wanted.begin(), wanted.end());
      });
  return static_cast<size_t>(found - node.children.begin());
}

PrefixNode* PrefixTree::find_child(PrefixNode& node, std::span<const int32_t> ids) {
  const size_t at = lower_bound(node, ids);
  if (at == node.children.size()) return nullptr;
  PrefixNode* child = node.children[at].get();
  return std::equal(ids.begin(), ids.end(), child->ids.begin(), child->ids.end()) ? child : nullptr;
}

PrefixNode& PrefixTree::add_child(PrefixNode& node, std::span<const int32_t> ids) {
  auto made = std::make_unique<PrefixNode>();
  PrefixNode& child = *made;
  child.parent = &node;
  child.ids.assign(ids.begin(), ids.end());
  child.depth = node.depth + 1;
  child.slots.resize(blocks_.n_groups());
  child.use = last_use_;
  unlist(node);
  const size_t at = lower_bound(node, ids);
  node.children.insert(node.children.begin() + static_cast<std::ptrdiff_t>(at), std::move(made));
  ++nodes_;
  list(child);
  list(node);
  // A tail that the new child continues has nothing more to tell; it stands right before it.
  if (at > 0 && common_prefix(node.children[at - 1]->ids, ids) == std::ssize(node.children[at - 1]->ids))
    forget(*node.children[at - 1]);
  return child;
}

void PrefixTree::touch(PrefixNode& node, uint64_t use) {
  unlist(node);
  node.use = use;
  list(node);
}

void PrefixTree::list(PrefixNode& node) {
  if (node.held && node.held_children == 0) held_leaves_[node.use] = &node;
  if (!node.held && node.parent != nullptr && node.children.empty()) forgettable_[node.use] = &node;
}

void PrefixTree::unlist(PrefixNode& node) {
  if (node.held && node.held_children == 0) held_leaves_.erase(node.use);
  if (!node.held && node.parent != nullptr && node.children.empty()) forgettable_.erase(node.use);
}

void PrefixTree::hold(PrefixNode& node, const SequenceBlocks& sequence) {
  for (size_t group = 0; group < blocks_.n_groups(); ++group) {
    if (!is_full(blocks_.window(group))) continue;
    const int32_t block = sequence.tables[group][static_cast<size_t>(node.depth - 1)];
    blocks_.pool(group).keep(block);
    node.slots[group].block = block;
  }
  unlist(node);
  unlist(*node.parent);
  node.held = true;
  ++node.parent->held_children;
  ++held_;
  list(node);
  list(*node.parent);
}

void PrefixTree::share(const PrefixNode& node, SequenceBlocks& sequence) {
  for (size_t group = 0; group < blocks_.n_groups(); ++group) {
    if (!is_full(blocks_.window(group))) continue;
    int32_t& block = sequence.tables[group][static_cast<size_t>(node.depth - 1)];
    const int32_t same = node.slots[group].block;
    if (block == same) continue;
    blocks_.pool(group).add_reference(same);
    blocks_.pool(group).release(block);
    block = same;
  }
}

bool PrefixTree::take_snapshot(PrefixNode& node, const SequenceBlocks* sequence, Snapshot kind, uint64_t use) {
  if (node.snapshot != Snapshot::kNone) {
    order_of(node.snapshot).erase(node.snapshot_use);
    node.snapshot = std::max(node.snapshot, kind);
    node.snapshot_use = use;
    order_of(node.snapshot)[use] = &node;
    return true;
  }
  const auto for_each_in_window = [&](auto&& visit) {
    for (size_t group = 0; group < blocks_.n_groups(); ++group) {
      if (is_full(blocks_.window(group))) continue;
      const int64_t first = first_live_block(blocks_.window(group), node.depth * ops::kBlockTokens);
      for (PrefixNode* at = &node; at->depth > first; at = at->parent)
        if (!visit(group, at->slots[group], static_cast<size_t>(at->depth - 1))) return false;
    }
    return true;
  };
  const bool there = for_each_in_window([&](size_t group, const PrefixSlot& slot, size_t index) {
    return slot.block >= 0 || (sequence != nullptr && sequence->tables[group][index] >= 0);
  });
  if (!there) return false;
  for_each_in_window([&](size_t group, PrefixSlot& slot, size_t index) {
    if (slot.block < 0) {
      slot.block = sequence->tables[group][index];
      blocks_.pool(group).keep(slot.block);
    }
    ++slot.claims;
    return true;
  });
  node.snapshot = kind;
  node.snapshot_use = use;
  order_of(kind)[use] = &node;
  return true;
}

void PrefixTree::drop_snapshot(PrefixNode& node) {
  if (node.snapshot == Snapshot::kNone) return;
  order_of(node.snapshot).erase(node.snapshot_use);
  node.snapshot = Snapshot::kNone;
  for (size_t group = 0; group < blocks_.n_groups(); ++group) {
    if (is_full(blocks_.window(group))) continue;
    const int64_t first = first_live_block(blocks_.window(group), node.depth * ops::kBlockTokens);
    for (PrefixNode* at = &node; at->depth > first; at = at->parent) {
      PrefixSlot& slot = at->slots[group];
      if (--slot.claims > 0) continue;
      blocks_.pool(group).give_up(slot.block);
      slot.block = -1;
    }
  }
}

void PrefixTree::evict(PrefixNode& leaf) {
  drop_snapshot(leaf);
  for (size_t group = 0; group < blocks_.n_groups(); ++group) {
    if (!is_full(blocks_.window(group))) continue;
    blocks_.pool(group).give_up(leaf.slots[group].block);
    leaf.slots[group].block = -1;
  }
  unlist(leaf);
  unlist(*leaf.parent);
  leaf.held = false;
  --leaf.parent->held_children;
  --held_;
  list(leaf);
  list(*leaf.parent);
}

void PrefixTree::forget(PrefixNode& leaf) {
  unlist(leaf);
  PrefixNode& parent = *leaf.parent;
  unlist(parent);
  parent.children.erase(parent.children.begin() + static_cast<std::ptrdiff_t>(lower_bound(parent, leaf.ids)));
  --nodes_;
  list(parent);
  if (parent.parent == nullptr && parent.children.empty()) roots_.erase(roots_.find(*parent.scope));
}

PrefixNode* PrefixTree::oldest_leaf(uint64_t but) {
  const auto oldest = held_leaves_.begin();
  return oldest == held_leaves_.end() || oldest->first == but ? nullptr : oldest->second;
}

// Each running sequence shares the blocks of one path, so at most as many leaves as there are sequences are passed
// over.
PrefixNode* PrefixTree::oldest_free_leaf(size_t group) {
  const BlockPool& pool = blocks_.pool(group);
  for (const auto& [use, leaf] : held_leaves_)
    if (pool.references(leaf->slots[group].block) == 1) return leaf;
  return nullptr;
}

PrefixNode* PrefixTree::oldest_free_snapshot(size_t group) {
  const BlockPool& pool = blocks_.pool(group);
  for (const Order* order : {&ladder_, &turns_})
    for (const auto& [use, node] : *order) {
      const int64_t first = first_live_block(blocks_.window(group), node->depth * ops::kBlockTokens);
      for (const PrefixNode* at = node; at->depth > first; at = at->parent)
        if (pool.references(at->slots[group].block) == 1) return node;
    }
  return nullptr;
}

PrefixNode* PrefixTree::oldest_forgettable() {
  return forgettable_.empty() ? nullptr : forgettable_.begin()->second;
}

// Leaf by leaf: a path is too deep to be destroyed by recursion.
void PrefixTree::clear() {
  while (!held_leaves_.empty()) evict(*held_leaves_.begin()->second);
  while (!forgettable_.empty()) forget(*forgettable_.begin()->second);
  roots_.clear();
}

}  // namespace vedette::cache
