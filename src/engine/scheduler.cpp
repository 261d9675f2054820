#include "engine/scheduler.h"

#include <algorithm>

#include "cache/kv_cache.h"

namespace vedette::engine {
namespace {

bool contains(const std::vector<size_t>& list, size_t i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

// The working view of one planning: who still runs and how many blocks are free.
class Planner {
 public:
  Planner(const SchedulerConfig& config, const SchedulerState& state, StepPlan& plan)
      : config_(config), state_(state), plan_(plan) {}

  void run() {
    plan_.dropped.clear();
    plan_.preempted.clear();
    plan_.picks.clear();
    plan_.stuck.reset();
    while (decode_blocks() > spare_blocks(0) && give_back({})) {
    }
    for_each_active([&](size_t i) {
      if (state_.sequences[i].stage == Stage::kDecode) plan_.picks.push_back({i, 1, 1, true});
    });
    const bool prefilled = add_prefill();
    plan_.steps_since_prefill = prefilled || plan_.picks.empty() ? 0 : state_.steps_since_prefill + 1;
    if (plan_.picks.empty() && !plan_.gave_back() && !give_back(first_waiting())) plan_.stuck = first_hopeless();
  }

 private:
  size_t count() const { return state_.sequences.size(); }
  bool holds(size_t i) const { return state_.sequences[i].stage != Stage::kWaiting && !contains(plan_.preempted, i); }
  bool runs(size_t i) const { return holds(i) && !state_.sequences[i].paused; }

  int64_t running() const {
    int64_t running = 0;
    for (size_t i = 0; i < count(); ++i) running += runs(i);
    return running;
  }

  // The running sequences that get rows: after a resume there may be more of them than a step takes.
  template <typename Visit>
  void for_each_active(Visit&& visit) const {
    int64_t left = config_.max_sequences;
    for (size_t i = 0; i < count() && left > 0; ++i)
      if (runs(i)) {
        visit(i);
        --left;
      }
  }

  bool is_active(size_t wanted) const {
    bool found = false;
    for_each_active([&](size_t i) { found |= i == wanted; });
    return found;
  }

  // New blocks that the decode rows of this step need, in every group.
  int64_t decode_blocks() const {
    int64_t blocks = 0;
    for_each_active([&](size_t i) {
      const SequenceState& sequence = state_.sequences[i];
      if (sequence.stage == Stage::kDecode) blocks += cache::blocks_of(sequence.computed + 1) - sequence.covered_blocks;
    });
    return blocks;
  }

  int64_t held(size_t i, size_t group) const { return state_.held[i * state_.groups.size() + group]; }
  int64_t freed(size_t i, size_t group) const {
    return state_.freed.empty() ? held(i, group) : state_.freed[i * state_.groups.size() + group];
  }

  int64_t available(size_t group) const {
    int64_t blocks = state_.groups[group].available;
    for (const size_t i : plan_.preempted) blocks += freed(i, group);
    for (const size_t i : plan_.dropped) blocks += freed(i, group);
    return blocks;
  }

  // Free blocks of the scarcest group after `reserved` are taken.
  int64_t spare_blocks(int64_t reserved) const {
    int64_t spare = INT64_MAX;
    for (size_t group = 0; group < state_.groups.size(); ++group) spare = std::min(spare, available(group) - reserved);
    return spare;
  }

  // Takes blocks back from whoever can best do without; false: nobody but one running sequence, or `spared`, has any.
  bool give_back(std::optional<size_t> spared) {
    for (size_t i = 0; i < count(); ++i)
      if (state_.sequences[i].stage == Stage::kWaiting && state_.sequences[i].covered_blocks > 0 && i != spared &&
          !contains(plan_.dropped, i)) {
        plan_.dropped.push_back(i);
        return true;
      }
    if (const auto paused = least_progress(true)) {
      plan_.preempted.push_back(*paused);
      return true;
    }
    if (running() <= 1) return false;
    plan_.preempted.push_back(*least_progress(false));
    return true;
  }

  // Lowest priority, then fewest generated tokens, then fewest computed, then the last in order.
  std::optional<size_t> least_progress(bool paused) const {
    std::optional<size_t> victim;
    for (size_t i = 0; i < count(); ++i) {
      if (!holds(i) || state_.sequences[i].paused != paused) continue;
      if (!victim) victim = i;
      const SequenceState& a = state_.sequences[i];
      const SequenceState& b = state_.sequences[*victim];
      if (a.priority != b.priority
              ? a.priority < b.priority
              : a.generated < b.generated || (a.generated == b.generated && a.computed <= b.computed))
        victim = i;
    }
    return victim;
  }

  // Whether the blocks suffice for a waiting sequence; `paused`: if paused ones gave theirs back.
  bool fits(size_t wanted, bool paused) const {
    const int64_t active = running();
    const int64_t growth = active > 0 ? active + 1 : 0;
    for (size_t group = 0; group < state_.groups.size(); ++group) {
      int64_t blocks = available(group) + held(wanted, group);
      for (size_t i = 0; paused && i < count(); ++i)
        if (holds(i) && state_.sequences[i].paused) blocks += freed(i, group);
      const int64_t need =
          cache::most_blocks(state_.groups[group].window, state_.sequences[wanted].known, config_.prefill_chunk);
      if (blocks < need + growth) return false;
    }
    return true;
  }

  // Paused sequences go back where that lets a waiting one in with the next plan.
  bool can_admit(size_t wanted) {
    if (running() >= config_.max_sequences || plan_.gave_back()) return false;
    if (fits(wanted, false)) return true;
    if (fits(wanted, true))
      while (!fits(wanted, false)) plan_.preempted.push_back(*least_progress(true));
    return false;
  }

  std::optional<size_t> first_waiting() const {
    for (size_t i = 0; i < count(); ++i)
      if (state_.sequences[i].stage == Stage::kWaiting && !state_.sequences[i].paused) return i;
    return std::nullopt;
  }

  // With nothing left to take back: the pool is too small for it alone.
  std::optional<size_t> first_hopeless() const {
    for (size_t i = 0; i < count(); ++i)
      if (runs(i)) return i;
    return first_waiting();
  }

  // The sequence under prefill, unless a waiting one of higher priority can be admitted; else the first waiting one if
  // that can be.
  std::optional<size_t> prefill_candidate() {
    std::optional<size_t> under_way;
    for (size_t i = 0; i < count() && !under_way; ++i)
      if (runs(i) && state_.sequences[i].stage == Stage::kPrefill && is_active(i)) under_way = i;
    const std::optional<size_t> waiting = first_waiting();
    if (waiting && (!under_way || state_.sequences[*waiting].priority > state_.sequences[*under_way].priority) &&
        can_admit(*waiting))
      return waiting;
    return under_way;
  }

  static int64_t first_logits(const SequenceState& sequence) {
    return std::min(sequence.first_logits, sequence.known - 1);
  }

  bool add_prefill() {
    const std::optional<size_t> candidate = prefill_candidate();
    if (!candidate) return false;
    const SequenceState& sequence = state_.sequences[*candidate];
    const int64_t decoding = static_cast<int64_t>(plan_.picks.size());
    const int64_t chunk =
        state_.chunk_rows > 0 ? std::min(state_.chunk_rows, config_.prefill_chunk) : config_.prefill_chunk;
    int64_t rows = std::min({chunk, sequence.known - sequence.computed, config_.max_rows - decoding});
    if (sequence.cut > sequence.computed) rows = std::min(rows, sequence.cut - sequence.computed);
    const int64_t plain = std::max<int64_t>(0, first_logits(sequence) - sequence.computed);
    rows = std::min(rows, plain + config_.max_logit_rows - decoding);
    if (decoding > 0 && state_.steps_since_prefill < config_.grant_interval * rows / config_.prefill_chunk)
      return false;
    const int64_t blocks = sequence.covered_blocks + spare_blocks(decode_blocks());
    rows = std::min(rows, blocks * ops::kBlockTokens - sequence.computed);
    if (rows <= 0) return false;
    const int64_t end = sequence.computed + rows;
    const int64_t logit_rows = std::max<int64_t>(0, end - std::max(sequence.computed, first_logits(sequence)));
    plan_.picks.push_back({*candidate, rows, logit_rows, end == sequence.known});
    return true;
  }

  const SchedulerConfig& config_;
  const SchedulerState& state_;
  StepPlan& plan_;
};

}  // namespace

void plan_step(const SchedulerConfig& config, const SchedulerState& state, StepPlan& plan) {
  Planner(config, state, plan).run();
}

}  // namespace vedette::engine
