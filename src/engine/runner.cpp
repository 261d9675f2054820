#include "engine/runner.h"

#include <algorithm>

#include "base/error.h"

namespace vedette::engine {
namespace {

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

std::vector<cache::KvGroupLayout> kv_layout(const models::Decoder& decoder) {
  std::vector<cache::KvGroupLayout> layout;
  for (size_t group = 0; group < decoder.kv_groups().size(); ++group)
    layout.push_back({decoder.kv_groups()[group].window, decoder.config().kv_blocks[group]});
  return layout;
}

Runner::Runner(models::Decoder& decoder, const SchedulerConfig& config, std::function<Status()> health)
    : decoder_(decoder), config_(config), cache_(kv_layout(decoder)), health_(std::move(health)) {}

void Runner::add(std::unique_ptr<Sequence> sequence) {
  sequences_.push_back(std::move(sequence));
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

void Runner::step() {
  if (idle()) return;
  fill_state();
  plan_step(config_, state_, plan_);
  state_.steps_since_prefill = plan_.steps_since_prefill;
  for (const size_t i : plan_.preempted) preempt(*sequences_[i]);
  if (plan_.picks.empty()) {
    // Nothing runs and the first in line does not fit: Engine::start bounds the context so that this cannot be.
    finish(*sequences_[0], FinishReason::kError,
           out_of_budget("", "{} tokens need more K/V blocks than there are; lower the context length",
                         sequences_[0]->ids.size()));
  } else if (const Status status = run_picks(); !status.ok()) {
    for (const Pick& pick : plan_.picks) finish(*sequences_[pick.sequence], FinishReason::kError, status.error());
  } else {
    int64_t slot = 0;
    for (const Pick& pick : plan_.picks)
      if (pick.wants_logits) take_logits(*sequences_[pick.sequence], decoder_.logits(slot++));
  }
  drop_finished();
}

void Runner::fill_state() {
  state_.sequences.clear();
  state_.held.clear();
  state_.groups.clear();
  for (const auto& sequence : sequences_) {
    state_.sequences.push_back({sequence->stage, static_cast<int64_t>(sequence->ids.size()), sequence->computed,
                                sequence->generated(), sequence->blocks.covered_blocks()});
    for (size_t group = 0; group < cache_.n_groups(); ++group)
      state_.held.push_back(cache_.held(sequence->blocks, group));
  }
  for (size_t group = 0; group < cache_.n_groups(); ++group)
    state_.groups.push_back({cache_.window(group), cache_.pool(group).available()});
}

// K/V is dropped and computed again later; every computation is deterministic, so the output stays the same.
void Runner::preempt(Sequence& sequence) {
  cache_.release(sequence.blocks);
  sequence.computed = 0;
  sequence.stage = Stage::kWaiting;
  ++preemptions_;
}

Status Runner::run_picks() {
  builder_.clear();
  const Clock::time_point now = Clock::now();
  for (const Pick& pick : plan_.picks) {
    Sequence& sequence = *sequences_[pick.sequence];
    if (!sequence.has_started) {
      sequence.has_started = true;
      sequence.started = now;
    }
    if (!cache_.reserve(sequence.blocks, sequence.computed + pick.rows))
      return internal_error("", "the K/V blocks planned for a step of {} rows are not there", pick.rows);
    const int64_t end = sequence.computed + pick.rows;
    builder_.append(
        sequence.blocks,
        std::span(sequence.ids).subspan(static_cast<size_t>(sequence.computed), static_cast<size_t>(pick.rows)),
        sequence.computed, pick.wants_logits ? end - 1 : end);
  }
  VEDETTE_RETURN_IF_ERROR(decoder_.run(builder_.step()));
  if (health_) VEDETTE_RETURN_IF_ERROR(health_());
  for (const Pick& pick : plan_.picks) {
    Sequence& sequence = *sequences_[pick.sequence];
    sequence.computed += pick.rows;
    sequence.stage = pick.wants_logits ? Stage::kDecode : Stage::kPrefill;
    cache_.free_outside_window(sequence.blocks, sequence.computed);
  }
  return ok_status();
}

void Runner::take_logits(Sequence& sequence, std::span<const float> logits) {
  if (observer_) observer_(sequence, logits);
  Result<int32_t> token = sequence.sampler.sample(logits, {sequence.ids, sequence.prompt_tokens},
                                                  static_cast<int64_t>(sequence.ids.size()));
  if (!token.ok()) return finish(sequence, FinishReason::kError, std::move(token).error());
  if (sequence.generated() == 0) sequence.first_token = Clock::now();
  sequence.ids.push_back(*token);

  text_.clear();
  const bool ended = std::binary_search(sequence.end_ids.begin(), sequence.end_ids.end(), *token);
  if (!ended && sequence.detokenizer) sequence.stops.push(sequence.detokenizer->push(*token), text_);
  std::optional<FinishReason> reason;
  if (ended || sequence.stops.matched())
    reason = FinishReason::kStop;
  else if (sequence.generated() >= sequence.max_tokens)
    reason = FinishReason::kLength;
  deliver(sequence, *token, reason);
}

void Runner::deliver(Sequence& sequence, int32_t token, std::optional<FinishReason> reason) {
  if (reason && sequence.detokenizer) {
    sequence.stops.push(sequence.detokenizer->finish(), text_);
    sequence.stops.finish(text_);
  }
  event_.ids.assign(1, token);
  event_.text.swap(text_);
  sequence.sink(event_);
  event_.text.swap(text_);
  if (reason) finish(sequence, *reason);
}

// Ends a sequence: its K/V goes back, its sink hears why. Text still held goes out first, but for a stop that matched.
void Runner::finish(Sequence& sequence, FinishReason reason, std::optional<Error> error) {
  if (!sequence.sink) return;
  cache_.release(sequence.blocks);
  const Clock::time_point now = Clock::now();
  const EventSink sink = std::move(sequence.sink);
  sequence.sink = nullptr;

  Event event;
  event.kind = Event::Kind::kTokens;
  if (sequence.detokenizer && sequence.generated() > 0) {
    sequence.stops.push(sequence.detokenizer->finish(), event.text);
    sequence.stops.finish(event.text);
    if (!event.text.empty()) sink(event);
  }
  event = {};
  event.kind = Event::Kind::kFinished;
  event.reason = reason;
  event.stop_text = sequence.stops.stop();
  event.error = std::move(error);
  event.seed = sequence.sampler.seed();
  event.max_tokens_clamped = sequence.max_tokens_clamped;
  Timings& timings = event.timings;
  timings.prompt_tokens = sequence.prompt_tokens;
  timings.generated_tokens = sequence.generated();
  const bool has_token = sequence.generated() > 0;
  timings.queue_ms = milliseconds(sequence.submitted, sequence.has_started ? sequence.started : now);
  if (sequence.has_started) timings.prefill_ms = milliseconds(sequence.started, has_token ? sequence.first_token : now);
  if (has_token) timings.decode_ms = milliseconds(sequence.first_token, now);
  sink(event);
}

void Runner::drop_finished() {
  std::erase_if(sequences_, [](const auto& sequence) { return !sequence->sink; });
}

}  // namespace vedette::engine
