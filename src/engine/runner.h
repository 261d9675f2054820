// The engine without its thread: sequences, their K/V, and one step at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/kv_cache.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/step_builder.h"
#include "models/decoder.h"

namespace vedette::engine {

// Sees the logits from which a sequence's next token is drawn, before the draw.
using LogitsObserver = std::function<void(const Sequence& sequence, std::span<const float> logits)>;

// Owned by the engine thread (tests call it directly). Sinks are called from inside add(), cancel() and step().
class Runner {
 public:
  // config.max_rows and max_sequences must lie within what the decoder was loaded for (Engine::start checks).
  // health is asked after each step; an error ends the sequences of that step.
  Runner(models::Decoder& decoder, const SchedulerConfig& config, std::function<Status()> health = {});

  void add(std::unique_ptr<Sequence> sequence);
  void cancel(RequestId id);
  void cancel_all();
  // Plans and runs one step, delivers its events. Does nothing when idle.
  void step();
  bool idle() const { return sequences_.empty(); }

  void observe(LogitsObserver observer) { observer_ = std::move(observer); }
  const cache::KvCache& cache() const { return cache_; }
  int64_t preemptions() const { return preemptions_; }

 private:
  void fill_state();
  void preempt(Sequence& sequence);
  Status run_picks();
  void take_logits(Sequence& sequence, std::span<const float> logits);
  void deliver(Sequence& sequence, int32_t token, std::optional<FinishReason> reason);
  void finish(Sequence& sequence, FinishReason reason, std::optional<Error> error = {});
  void drop_finished();

  models::Decoder& decoder_;
  SchedulerConfig config_;
  cache::KvCache cache_;
  std::function<Status()> health_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // in order of arrival
  SchedulerState state_;
  StepPlan plan_;
  StepBuilder builder_;
  LogitsObserver observer_;
  Event event_;  // kTokens
  std::string text_;
  int64_t preemptions_ = 0;
};

// The K/V layout of a loaded decoder.
std::vector<cache::KvGroupLayout> kv_layout(const models::Decoder& decoder);

}  // namespace vedette::engine
