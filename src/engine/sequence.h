// One request on its way through the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/prefix_cache.h"
#include "engine/engine.h"
#include "engine/scheduler.h"
#include "engine/stop_matcher.h"
#include "sampling/constraint.h"
#include "sampling/loop_detector.h"
#include "sampling/sampling.h"
#include "text/detokenizer.h"

namespace vedette::engine {

using Clock = std::chrono::steady_clock;

// What a sequence takes from the prefix cache and leaves there.
struct PrefixPlan {
  bool enabled = true;
  bool adopts = true;  // takes what there is
  std::string scope;
  int64_t history_cut = 0;  // depth of the snapshot that the next turn is expected to want; 0: none
  int64_t parted_cut = 0;   // depth at which this prompt left an earlier one; 0: none
  bool looked_up = false;
  uint64_t seen_version = 0;  // of the cache, when it was looked up
  cache::PrefixMatch match;
  CacheReport report;  // of the first admission
};

// Made by submit() on the caller's thread, then owned by the engine thread.
struct Sequence {
  RequestId id = 0;
  EventSink sink;

  std::vector<int32_t> ids;  // prompt, then what was generated; reserved for all there can be
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;  // within the context; 0: only the prompt is computed
  bool max_tokens_clamped = false;
  std::vector<int32_t> end_ids;  // sorted: the model's end tokens (unless ignored) and the request's
  sampling::SamplerChain sampler;
  std::optional<text::Detokenizer> detokenizer;  // none: ids only
  StopMatcher stops;
  std::unique_ptr<sampling::Constraint> constraint;  // null: every token is allowed
  std::optional<sampling::LoopDetector> loop;
  int logprobs = -1;         // alternatives per token; -1: none wanted
  int64_t prompt_told = -1;  // prompt tokens whose log probabilities were told, but the first; -1: none wanted
  bool progress = false;     // kProgress events wanted
  int priority = 0;

  Stage stage = Stage::kWaiting;
  int64_t computed = 0;  // tokens whose K/V is in the cache
  cache::SequenceBlocks blocks;
  PrefixPlan prefix;
  int64_t prefilled = -1;  // last reported by kProgress
  bool paused = false;
  bool by_loop = false;

  Clock::time_point submitted, started, first_token;
  bool has_started = false;

  int64_t generated() const { return static_cast<int64_t>(ids.size()) - prompt_tokens; }
  // The first position whose logits are still to be looked at.
  int64_t first_logits() const {
    const bool prompt = prompt_told >= 0 && prompt_told < prompt_tokens - 1;
    return prompt ? prompt_told : static_cast<int64_t>(ids.size()) - 1;
  }
};

}  // namespace vedette::engine
