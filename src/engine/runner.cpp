#include "engine/runner.h"

#include <algorithm>

#include "base/error.h"
#include "engine/memory.h"

namespace vedette::engine {

std::vector<cache::KvGroupLayout> kv_layout(const models::Decoder& decoder) {
  std::vector<cache::KvGroupLayout> layout;
  for (size_t group = 0; group < decoder.kv_groups().size(); ++group)
    layout.push_back({decoder.kv_groups()[group].window, decoder.config().kv_blocks[group]});
  return layout;
}

Runner::Runner(models::Decoder& decoder, const SchedulerConfig& config, RunnerOptions options)
    : decoder_(decoder),
      config_(config),
      options_(std::move(options)),
      cache_(kv_layout(decoder)),
      prefixes_(cache_, options_.prefix),
      pace_(options_.chunk_ms),
      words_(static_cast<size_t>((decoder.spec().vocab_size + 31) / 32)) {
  config_.max_logit_rows = decoder.config().max_logit_rows;
  for (size_t group = 0; group < cache_.n_groups(); ++group) stats_.kv_blocks_total += cache_.pool(group).total();
  stats_.kv_bytes_total = kv_bytes(decoder.kv_groups(), decoder.config().kv_blocks, decoder.config().kv_type);
  publish();
}

void Runner::add(std::unique_ptr<Sequence> sequence) {
  const auto place = std::upper_bound(sequences_.begin(), sequences_.end(), sequence->priority,
                                      [](int priority, const auto& other) { return priority > other->priority; });
  cache_.prepare(sequence->blocks, sequence->prompt_tokens + sequence->max_tokens);
  sequences_.insert(place, std::move(sequence));
}

void Runner::cancel(RequestId id) {
  for (const auto& sequence : sequences_)
    if (sequence->id == id) finish(*sequence, FinishReason::kCancelled);
  drop_finished();
}

void Runner::cancel_all() {
  for (const auto& sequence : sequences_) finish(*sequence, FinishReason::kCancelled);
  drop_finished();
}

void Runner::set_paused(RequestId id, bool paused) {
  for (const auto& sequence : sequences_)
    if (sequence->id == id) sequence->paused = paused;
}

bool Runner::step() {
  if (idle()) return false;
  look_up_next();
  fill_state();
  plan_step(config_, state_, plan_);
  state_.steps_since_prefill = plan_.steps_since_prefill;
  for (const size_t i : plan_.dropped) prefixes_.drop(*sequences_[i]);
  for (const size_t i : plan_.preempted) preempt(*sequences_[i]);
  bool progress = plan_.gave_back() || !plan_.picks.empty();
  if (plan_.stuck) {
    // Engine::start bounds the context so that this cannot be.
    finish(*sequences_[*plan_.stuck], FinishReason::kError,
           out_of_budget("", "{} tokens need more K/V blocks than there are; lower the context length",
                         sequences_[*plan_.stuck]->ids.size()));
    progress = true;
  } else if (const Status status = run_picks(); !status.ok()) {
    for (const Pick& pick : plan_.picks) finish(*sequences_[pick.sequence], FinishReason::kError, status.error());
  } else {
    int64_t slot = 0;
    for (const Pick& pick : plan_.picks) {
      take_rows(pick, slot);
      slot += pick.logit_rows;
    }
  }
  drop_finished();
  publish();
  return progress;
}

// The next in line holds what there is of its beginning, so that it is admitted for the rest alone; nobody behind does.
void Runner::look_up_next() {
  int64_t running = 0;
  const Sequence* prefilling = nullptr;
  Sequence* next = nullptr;
  for (const auto& sequence : sequences_) {
    if (sequence->paused) continue;
    running += sequence->stage != Stage::kWaiting;
    if (sequence->stage == Stage::kPrefill && prefilling == nullptr) prefilling = sequence.get();
    if (sequence->stage == Stage::kWaiting && next == nullptr) next = sequence.get();
  }
  const bool in_turn = next != nullptr && running < config_.max_sequences &&
                       (prefilling == nullptr || next->priority > prefilling->priority);
  for (const auto& sequence : sequences_)
    if (sequence->stage == Stage::kWaiting && sequence->prefix.looked_up && (sequence.get() != next || !in_turn))
      prefixes_.drop(*sequence);
  if (in_turn) prefixes_.look_up(*next);
}

void Runner::fill_state() {
  state_.sequences.clear();
  state_.held.clear();
  state_.groups.clear();
  state_.chunk_rows = pace_.rows();
  bool any_paused = false;
  for (const auto& sequence : sequences_) {
    state_.sequences.push_back({sequence->stage, static_cast<int64_t>(sequence->ids.size()), sequence->computed,
                                sequence->generated(), sequence->blocks.covered_blocks(), prefixes_.next_cut(*sequence),
                                sequence->priority, sequence->paused, sequence->first_logits()});
    any_paused |= sequence->paused;
    for (size_t group = 0; group < cache_.n_groups(); ++group)
      state_.held.push_back(cache_.held(sequence->blocks, group));
  }
  int64_t least = INT64_MAX;
  for (size_t group = 0; group < cache_.n_groups(); ++group) {
    // What the prefix cache alone holds makes room when asked.
    const int64_t available = cache_.pool(group).available() + cache_.pool(group).kept_alone();
    state_.groups.push_back({cache_.window(group), available});
    least = std::min(least, available);
  }
  state_.freed.clear();
  // Counted only where the plan may take blocks back: a step needs at most one for each sequence that decodes.
  if (any_paused || least < static_cast<int64_t>(sequences_.size()) + 1) fill_freed();
}

void Runner::fill_freed() {
  for (const auto& sequence : sequences_)
    for (size_t group = 0; group < cache_.n_groups(); ++group)
      state_.freed.push_back(cache_.held_alone(sequence->blocks, group));
}

// K/V is given up and computed again later, as far as the prefix cache does not keep it; every computation is
// deterministic, so the output stays the same.
void Runner::preempt(Sequence& sequence) {
  prefixes_.keep_all(sequence);
  prefixes_.drop(sequence);
  sequence.stage = Stage::kWaiting;
  ++stats_.preemptions;
}

bool Runner::reserve_blocks() {
  int64_t more = 0;
  for (const Pick& pick : plan_.picks) {
    const Sequence& sequence = *sequences_[pick.sequence];
    more += std::max<int64_t>(0, cache::blocks_of(sequence.computed + pick.rows) - sequence.blocks.covered_blocks());
  }
  needed_.assign(cache_.n_groups(), more);
  if (!prefixes_.make_room(needed_)) return false;
  for (const Pick& pick : plan_.picks) {
    Sequence& sequence = *sequences_[pick.sequence];
    if (!cache_.reserve(sequence.blocks, sequence.computed + pick.rows)) return false;
  }
  return true;
}

Status Runner::run_picks() {
  if (plan_.picks.empty()) return ok_status();
  builder_.clear();
  const Clock::time_point begun = Clock::now();
  if (!reserve_blocks())
    return internal_error("", "the K/V blocks planned for a step of {} sequences are not there", plan_.picks.size());
  for (const Pick& pick : plan_.picks) {
    Sequence& sequence = *sequences_[pick.sequence];
    if (!sequence.has_started) begin(sequence, begun);
    const int64_t end = sequence.computed + pick.rows;
    builder_.append(
        sequence.blocks,
        std::span(sequence.ids).subspan(static_cast<size_t>(sequence.computed), static_cast<size_t>(pick.rows)),
        sequence.computed, end - pick.logit_rows);
  }
  VEDETTE_RETURN_IF_ERROR(decoder_.run(builder_.step()));
  if (options_.health) VEDETTE_RETURN_IF_ERROR(options_.health());
  count_step(std::chrono::duration<double>(Clock::now() - begun).count());
  for (const Pick& pick : plan_.picks) {
    Sequence& sequence = *sequences_[pick.sequence];
    const bool chunk = sequence.stage != Stage::kDecode;
    sequence.computed += pick.rows;
    sequence.stage = pick.draws ? Stage::kDecode : Stage::kPrefill;
    if (chunk) {
      prefixes_.keep_chunk(sequence);
      report_progress(sequence);
    }
    cache_.free_outside_window(sequence.blocks, sequence.computed);
  }
  return ok_status();
}

void Runner::begin(Sequence& sequence, Clock::time_point now) {
  sequence.has_started = true;
  sequence.started = now;
  prefixes_.admit(sequence);
  ++stats_.requests_started;
  stats_.cached_tokens += sequence.prefix.report.cached_tokens;
  report_progress(sequence);
}

// A mixed step counts by its rows.
void Runner::count_step(double seconds) {
  int64_t rows = 0, chunk_rows = 0;
  for (const Pick& pick : plan_.picks) {
    rows += pick.rows;
    if (sequences_[pick.sequence]->stage == Stage::kDecode) continue;
    chunk_rows += pick.rows;
    ++stats_.prefill_chunks;
  }
  ++stats_.steps;
  stats_.decode_rows += rows - chunk_rows;
  stats_.prompt_tokens += chunk_rows;
  const double prefill = seconds * static_cast<double>(chunk_rows) / static_cast<double>(rows);
  stats_.prefill_seconds += prefill;
  stats_.decode_seconds += seconds - prefill;
  if (chunk_rows > 0) pace_.measured(rows, seconds * 1e3);
}

void Runner::drop_finished() {
  std::erase_if(sequences_, [](const auto& sequence) { return !sequence->sink; });
}

}  // namespace vedette::engine
