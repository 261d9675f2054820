// What sequences tell the world: tokens, progress, their end, and the engine's numbers.
#include <algorithm>

#include "base/error.h"
#include "engine/runner.h"
#include "sampling/logprobs.h"

namespace vedette::engine {
namespace {

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

Timings timings_of(const Sequence& sequence, Clock::time_point now) {
  Timings timings;
  timings.prompt_tokens = sequence.prompt_tokens;
  timings.cached_tokens = sequence.prefix.report.cached_tokens;
  timings.generated_tokens = sequence.generated();
  const bool has_token = sequence.generated() > 0;
  timings.queue_ms = milliseconds(sequence.submitted, sequence.has_started ? sequence.started : now);
  if (sequence.has_started) timings.prefill_ms = milliseconds(sequence.started, has_token ? sequence.first_token : now);
  if (has_token) timings.decode_ms = milliseconds(sequence.first_token, now);
  return timings;
}

SlotView slot_of(const Sequence& sequence) {
  using State = SlotView::State;
  SlotView slot;
  slot.id = sequence.id;
  slot.state = sequence.paused                     ? State::kPaused
               : sequence.stage == Stage::kWaiting ? State::kWaiting
               : sequence.stage == Stage::kPrefill ? State::kPrefill
                                                   : State::kDecode;
  slot.priority = sequence.priority;
  slot.prompt_tokens = sequence.prompt_tokens;
  slot.prefilled_tokens = std::min(sequence.computed, sequence.prompt_tokens);
  slot.cached_tokens = sequence.prefix.report.cached_tokens;
  slot.generated_tokens = sequence.generated();
  slot.max_tokens = sequence.max_tokens;
  return slot;
}

}  // namespace

void Runner::publish() {
  stats_.slots.clear();
  stats_.running = stats_.waiting = 0;
  for (const bool waiting : {false, true})
    for (const auto& sequence : sequences_) {
      if (!sequence->sink || (sequence->stage == Stage::kWaiting) != waiting) continue;
      stats_.slots.push_back(slot_of(*sequence));
      ++(waiting ? stats_.waiting : stats_.running);
    }
  stats_.kv_blocks_free = stats_.kv_blocks_cached = 0;
  for (size_t group = 0; group < cache_.n_groups(); ++group) {
    stats_.kv_blocks_free += cache_.pool(group).available();
    stats_.kv_blocks_cached += cache_.pool(group).kept_alone();
  }
  const cache::PrefixCacheStats cached = prefixes_.stats();
  stats_.cache_hits = prefixes_.hits();
  stats_.cache_misses = prefixes_.misses();
  stats_.cache_evictions = cached.evictions;
  stats_.cache_entries = cached.entries;
  board_.publish(stats_);
}

// Tokens computed again after a preemption are no news.
void Runner::report_progress(Sequence& sequence) {
  const int64_t prefilled = std::min(sequence.computed, sequence.prompt_tokens);
  if (!sequence.progress || prefilled <= sequence.prefilled) return;
  sequence.prefilled = prefilled;
  Event event;
  event.kind = Event::Kind::kProgress;
  event.prefilled = prefilled;
  sequence.sink(event);
}

Result<std::span<const uint32_t>> Runner::allowed_words(Sequence& sequence) {
  if (!sequence.constraint) return std::span<const uint32_t>();
  VEDETTE_ASSIGN_OR_RETURN(const bool limited, sequence.constraint->allowed(words_));
  if (!limited) return std::span<const uint32_t>();
  // Bits beyond the vocabulary mean nothing.
  if (const int64_t used = decoder_.spec().vocab_size % 32; used > 0) words_.back() &= (uint32_t{1} << used) - 1;
  if (std::all_of(words_.begin(), words_.end(), [](uint32_t word) { return word == 0; }))
    return internal_error("", "position {}: the output's grammar allows no token of this vocabulary",
                          sequence.ids.size());
  return std::span<const uint32_t>(words_);
}

// Appends the next token to the sequence.
Status Runner::draw(Sequence& sequence, std::span<const float> logits) {
  VEDETTE_ASSIGN_OR_RETURN(const std::span<const uint32_t> allowed, allowed_words(sequence));
  VEDETTE_ASSIGN_OR_RETURN(const int32_t token,
                           sequence.sampler.sample(logits, {sequence.ids, sequence.prompt_tokens},
                                                   static_cast<int64_t>(sequence.ids.size()), allowed));
  if (sequence.constraint) VEDETTE_RETURN_IF_ERROR(sequence.constraint->accept(token));
  if (sequence.logprobs >= 0) {
    logprobs_.chosen.id = token;
    logprobs_.chosen.logprob = sampling::token_logprobs(logits, token, sequence.logprobs, logprobs_.top);
  }
  if (sequence.generated() == 0) sequence.first_token = Clock::now();
  sequence.ids.push_back(token);
  ++stats_.generated_tokens;
  return ok_status();
}

std::optional<FinishReason> Runner::reason_to_end(Sequence& sequence, int32_t token) {
  const bool ended = std::binary_search(sequence.end_ids.begin(), sequence.end_ids.end(), token);
  if (!ended && sequence.detokenizer) sequence.stops.push(sequence.detokenizer->push(token), text_);
  if (ended || sequence.stops.matched() || (sequence.constraint && sequence.constraint->complete()))
    return FinishReason::kStop;
  if (sequence.loop && sequence.loop->push(token)) {
    sequence.by_loop = true;
    return FinishReason::kStop;
  }
  if (sequence.generated() >= sequence.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

void Runner::take_rows(const Pick& pick, int64_t slot) {
  Sequence& sequence = *sequences_[pick.sequence];
  const int64_t of_prompt = pick.logit_rows - (pick.draws ? 1 : 0);
  if (of_prompt > 0) tell_prompt(sequence, slot, of_prompt);
  if (pick.draws) take_logits(sequence, decoder_.logits(slot + of_prompt));
}

// The logits of a prompt's row say how likely the token after it was.
void Runner::tell_prompt(Sequence& sequence, int64_t slot, int64_t rows) {
  Event event;
  event.kind = Event::Kind::kPrompt;
  for (int64_t row = 0; row < rows; ++row) {
    TokenLogprobs& one = event.logprobs.emplace_back();
    one.chosen.id = sequence.ids[static_cast<size_t>(++sequence.prompt_told)];
    one.chosen.logprob =
        sampling::token_logprobs(decoder_.logits(slot + row), one.chosen.id, sequence.logprobs, one.top);
  }
  sequence.sink(event);
}

void Runner::take_logits(Sequence& sequence, std::span<const float> logits) {
  if (sequence.max_tokens == 0) return finish(sequence, FinishReason::kLength);
  if (observer_) observer_(sequence, logits);
  if (Status status = draw(sequence, logits); !status.ok())
    return finish(sequence, FinishReason::kError, std::move(status).error());
  text_.clear();
  const int32_t token = sequence.ids.back();
  deliver(sequence, token, reason_to_end(sequence, token));
}

void Runner::deliver(Sequence& sequence, int32_t token, std::optional<FinishReason> reason) {
  if (reason && sequence.detokenizer) {
    sequence.stops.push(sequence.detokenizer->finish(), text_);
    sequence.stops.finish(text_);
  }
  event_.ids.assign(1, token);
  event_.text.swap(text_);
  if (sequence.logprobs >= 0) event_.logprobs.push_back(std::move(logprobs_));
  sequence.sink(event_);
  if (sequence.logprobs >= 0) logprobs_ = std::move(event_.logprobs.back());
  event_.logprobs.clear();
  event_.text.swap(text_);
  if (reason) finish(sequence, *reason);
}

// Ends a sequence: its K/V goes back, its sink hears why. Text still held goes out first, but for a stop that matched.
void Runner::finish(Sequence& sequence, FinishReason reason, std::optional<Error> error) {
  if (!sequence.sink) return;
  // After an error nobody can say what the K/V is worth.
  if (reason != FinishReason::kError) prefixes_.keep_all(sequence);
  cache_.release(sequence.blocks);
  const Clock::time_point now = Clock::now();
  const EventSink sink = std::move(sequence.sink);
  sequence.sink = nullptr;
  stats_.requests_finished += reason == FinishReason::kStop || reason == FinishReason::kLength;
  stats_.requests_cancelled += reason == FinishReason::kCancelled;
  stats_.requests_failed += reason == FinishReason::kError;
  // Whoever hears of the end finds it counted.
  publish();
  if (options_.on_finish) options_.on_finish();

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
  event.by_loop = sequence.by_loop;
  event.timings = timings_of(sequence, now);
  event.cache = std::move(sequence.prefix.report);
  sink(event);
}

}  // namespace vedette::engine
