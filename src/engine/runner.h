// The engine without its thread: sequences, their K/V, and one step at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/kv_cache.h"
#include "engine/chunk_pace.h"
#include "engine/prefix_sharing.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/stats_board.h"
#include "engine/step_builder.h"
#include "models/decoder.h"

namespace vedette::engine {

// Sees the logits from which a sequence's next token is drawn, before the draw.
using LogitsObserver = std::function<void(const Sequence& sequence, std::span<const float> logits)>;

struct RunnerOptions {
  PrefixConfig prefix;
  double chunk_ms = 0;  // a step with a prefill chunk is kept to about this; 0: chunks are as long as can be
  // Asked after each step; an error ends the sequences of that step.
  std::function<Status()> health;
  std::function<void()> on_finish;  // called as a sequence leaves, before its sink hears of it
};

// Owned by the engine thread (tests call it directly). Sinks are called from inside add(), cancel() and step().
class Runner {
 public:
  // config.max_rows and max_sequences must lie within what the decoder was loaded for (Engine::start checks).
  Runner(models::Decoder& decoder, const SchedulerConfig& config, RunnerOptions options = {});

  void add(std::unique_ptr<Sequence> sequence);
  void cancel(RequestId id);
  void cancel_all();
  // A paused sequence gets no rows and keeps its K/V as long as nobody needs it more.
  void set_paused(RequestId id, bool paused);
  void reset_prefix_cache() { prefixes_.clear(); }
  // Plans and runs one step, delivers its events. False: nothing can run before something arrives or is resumed.
  bool step();
  bool idle() const { return sequences_.empty(); }

  // The picture after the last step, for any thread.
  const StatsBoard& board() const { return board_; }
  void publish();

  void observe(LogitsObserver observer) { observer_ = std::move(observer); }
  const cache::KvCache& cache() const { return cache_; }
  int64_t preemptions() const { return stats_.preemptions; }

 private:
  void look_up_next();
  void fill_state();
  void fill_freed();
  void preempt(Sequence& sequence);
  Status run_picks();
  bool reserve_blocks();
  void begin(Sequence& sequence, Clock::time_point now);
  void count_step(double seconds);
  void report_progress(Sequence& sequence);

  // What the rows of a pick told, whose logits begin at `slot`.
  void take_rows(const Pick& pick, int64_t slot);
  void tell_prompt(Sequence& sequence, int64_t slot, int64_t rows);
  void take_logits(Sequence& sequence, std::span<const float> logits);
  // The words of the sequence's constraint; empty: every token is allowed.
  Result<std::span<const uint32_t>> allowed_words(Sequence& sequence);
  Status draw(Sequence& sequence, std::span<const float> logits);
  std::optional<FinishReason> reason_to_end(Sequence& sequence, int32_t token);
  void deliver(Sequence& sequence, int32_t token, std::optional<FinishReason> reason);
  void finish(Sequence& sequence, FinishReason reason, std::optional<Error> error = {});
  void drop_finished();

  models::Decoder& decoder_;
  SchedulerConfig config_;
  RunnerOptions options_;
  cache::KvCache cache_;
  PrefixSharing prefixes_;
  ChunkPace pace_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // in order of admission
  SchedulerState state_;
  StepPlan plan_;
  StepBuilder builder_;
  std::vector<int64_t> needed_;  // blocks by group
  LogitsObserver observer_;
  Event event_;             // kTokens
  TokenLogprobs logprobs_;  // of event_, between events
  std::string text_;
  std::vector<uint32_t> words_;
  EngineStats stats_;
  StatsBoard board_;
};

// The K/V layout of a loaded decoder.
std::vector<cache::KvGroupLayout> kv_layout(const models::Decoder& decoder);

}  // namespace vedette::engine
