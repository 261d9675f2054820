#include "engine/prefix_sharing.h"

#include <algorithm>

namespace vedette::engine {
namespace {

int64_t whole_blocks(int64_t tokens) {
  return tokens - tokens % ops::kBlockTokens;
}

const char* to_string(cache::MissReason reason) {
  switch (reason) {
    case cache::MissReason::kNone:
      return "";
    case cache::MissReason::kCold:
      return "cold";
    case cache::MissReason::kDiffers:
      return "differs";
    case cache::MissReason::kEvicted:
      return "evicted";
    case cache::MissReason::kWindow:
      return "window";
  }
  return "";
}

}  // namespace

PrefixSharing::PrefixSharing(cache::KvCache& blocks, const PrefixConfig& config) : blocks_(blocks) {
  if (config.enabled) prefixes_.emplace(blocks, config.max_tokens);
  interval_ = cache::blocks_of(config.snapshot_interval) * ops::kBlockTokens;
  for (size_t group = 0; group < blocks.n_groups(); ++group) slides_ |= blocks.window(group) > 0;
}

void PrefixSharing::look_up(Sequence& sequence) {
  PrefixPlan& prefix = sequence.prefix;
  if (!applies(sequence) || !prefix.adopts || (prefix.looked_up && prefix.seen_version == prefixes_->version())) return;
  drop(sequence);
  prefix.match = prefixes_->adopt(prefix.scope, sequence.ids, sequence.blocks);
  prefix.looked_up = true;
  prefix.seen_version = prefixes_->version();
  sequence.computed = prefix.match.tokens;
  // Whoever shares this much with both will find a snapshot here.
  prefix.parted_cut = whole_blocks(prefix.match.matched);
}

void PrefixSharing::drop(Sequence& sequence) {
  blocks_.release(sequence.blocks);
  sequence.computed = 0;
  sequence.prefix.looked_up = false;
}

void PrefixSharing::admit(Sequence& sequence) {
  CacheReport& report = sequence.prefix.report;
  if (!applies(sequence)) {
    report.reason = "disabled";
    return;
  }
  if (!sequence.prefix.adopts) {
    report.reason = "logprobs";
    return;
  }
  cache::PrefixMatch& match = sequence.prefix.match;
  report.cached_tokens = match.tokens;
  report.matched_tokens = match.matched;
  report.reason = to_string(match.reason);
  report.expected = std::move(match.expected);
  ++(match.tokens > 0 ? hits_ : misses_);
}

int64_t PrefixSharing::next_cut(const Sequence& sequence) const {
  if (!slides_ || !applies(sequence)) return 0;
  const PrefixPlan& prefix = sequence.prefix;
  int64_t cut = (sequence.computed / interval_ + 1) * interval_;
  for (const int64_t depth : {prefix.history_cut, prefix.parted_cut})
    if (depth > sequence.computed) cut = std::min(cut, depth);
  return cut;
}

void PrefixSharing::keep_chunk(Sequence& sequence) {
  const PrefixPlan& prefix = sequence.prefix;
  const bool turn = sequence.computed == prefix.history_cut || sequence.computed == prefix.parted_cut;
  const bool rung = sequence.computed % interval_ == 0;
  insert(sequence, turn ? cache::Snapshot::kTurn : rung ? cache::Snapshot::kLadder : cache::Snapshot::kNone);
}

void PrefixSharing::keep_all(Sequence& sequence) {
  insert(sequence, cache::Snapshot::kTurn);
}

void PrefixSharing::insert(Sequence& sequence, cache::Snapshot snapshot) {
  if (!applies(sequence) || sequence.stage == Stage::kWaiting) return;
  prefixes_->insert(sequence.prefix.scope, std::span(sequence.ids).first(static_cast<size_t>(sequence.computed)),
                    sequence.blocks, snapshot);
}

bool PrefixSharing::make_room(std::span<const int64_t> needed) {
  if (prefixes_) return prefixes_->make_room(needed);
  for (size_t group = 0; group < needed.size(); ++group)
    if (blocks_.pool(group).available() < needed[group]) return false;
  return true;
}

void PrefixSharing::clear() {
  if (prefixes_) prefixes_->clear();
}

cache::PrefixCacheStats PrefixSharing::stats() const {
  return prefixes_ ? prefixes_->stats() : cache::PrefixCacheStats{};
}

}  // namespace vedette::engine
