#include "engine/scheduler.h"

#include <algorithm>

#include "cache/kv_cache.h"

namespace vedette::engine {
namespace {

// The working view of one planning: who still runs and how many blocks are free.
class Planner {
 public:
  Planner(const SchedulerConfig& config, const SchedulerState& state, StepPlan& plan)
      : config_(config), state_(state), plan_(plan) {}

  void run() {
    plan_.preempted.clear();
    plan_.picks.clear();
    while (decode_blocks() > spare_blocks(0) && running() > 1) plan_.preempted.push_back(least_progress());
    for (size_t i = 0; i < state_.sequences.size(); ++i)
      if (runs(i) && state_.sequences[i].stage == Stage::kDecode) plan_.picks.push_back({i, 1, true});
    const bool prefilled = add_prefill();
    plan_.steps_since_prefill = prefilled || plan_.picks.empty() ? 0 : state_.steps_since_prefill + 1;
  }

 private:
  bool runs(size_t i) const {
    return state_.sequences[i].stage != Stage::kWaiting &&
           std::find(plan_.preempted.begin(), plan_.preempted.end(), i) == plan_.preempted.end();
  }

  int64_t running() const {
    int64_t count = 0;
    for (size_t i = 0; i < state_.sequences.size(); ++i) count += runs(i);
    return count;
  }

  // New blocks that the decode rows of this step need, in every group.
  int64_t decode_blocks() const {
    int64_t blocks = 0;
    for (size_t i = 0; i < state_.sequences.size(); ++i) {
      const SequenceState& sequence = state_.sequences[i];
      if (runs(i) && sequence.stage == Stage::kDecode)
        blocks += cache::blocks_of(sequence.computed + 1) - sequence.covered_blocks;
    }
    return blocks;
  }

  int64_t available(size_t group) const {
    int64_t blocks = state_.groups[group].available;
    for (const size_t i : plan_.preempted) blocks += state_.held[i * state_.groups.size() + group];
    return blocks;
  }

  // Free blocks of the scarcest group after `reserved` are taken.
  int64_t spare_blocks(int64_t reserved) const {
    int64_t spare = INT64_MAX;
    for (size_t group = 0; group < state_.groups.size(); ++group) spare = std::min(spare, available(group) - reserved);
    return spare;
  }

  // Fewest generated tokens, then fewest computed, then the latest arrival.
  size_t least_progress() const {
    size_t victim = state_.sequences.size();
    for (size_t i = 0; i < state_.sequences.size(); ++i) {
      if (!runs(i)) continue;
      if (victim == state_.sequences.size()) victim = i;
      const SequenceState& a = state_.sequences[i];
      const SequenceState& b = state_.sequences[victim];
      if (a.generated < b.generated || (a.generated == b.generated && a.computed <= b.computed)) victim = i;
    }
    return victim;
  }

  bool can_admit(const SequenceState& sequence) const {
    const int64_t active = running();
    if (active >= config_.max_sequences || !plan_.preempted.empty()) return false;
    const int64_t growth = active > 0 ? active + 1 : 0;
    for (size_t group = 0; group < state_.groups.size(); ++group) {
      const int64_t need = cache::most_blocks(state_.groups[group].window, sequence.known, config_.prefill_chunk);
      if (available(group) < need + growth) return false;
    }
    return true;
  }

  // The sequence under prefill, else the first waiting one if it can be admitted.
  std::optional<size_t> prefill_candidate() const {
    for (size_t i = 0; i < state_.sequences.size(); ++i)
      if (runs(i) && state_.sequences[i].stage == Stage::kPrefill) return i;
    for (size_t i = 0; i < state_.sequences.size(); ++i) {
      if (state_.sequences[i].stage != Stage::kWaiting) continue;
      if (can_admit(state_.sequences[i])) return i;
      return std::nullopt;
    }
    return std::nullopt;
  }

  bool add_prefill() {
    const std::optional<size_t> candidate = prefill_candidate();
    if (!candidate) return false;
    const SequenceState& sequence = state_.sequences[*candidate];
    const int64_t decoding = static_cast<int64_t>(plan_.picks.size());
    int64_t rows = std::min({config_.prefill_chunk, sequence.known - sequence.computed, config_.max_rows - decoding});
    if (decoding > 0 && state_.steps_since_prefill < config_.grant_interval * rows / config_.prefill_chunk)
      return false;
    const int64_t blocks = sequence.covered_blocks + spare_blocks(decode_blocks());
    rows = std::min(rows, blocks * ops::kBlockTokens - sequence.computed);
    if (rows <= 0) return false;
    plan_.picks.push_back({*candidate, rows, sequence.computed + rows == sequence.known});
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
