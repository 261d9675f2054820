// One request on its way through the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "engine/engine.h"
#include "engine/scheduler.h"
#include "engine/stop_matcher.h"
#include "sampling/sampling.h"
#include "text/detokenizer.h"

namespace vedette::engine {

using Clock = std::chrono::steady_clock;

// Made by submit() on the caller's thread, then owned by the engine thread.
struct Sequence {
  RequestId id = 0;
  EventSink sink;

  std::vector<int32_t> ids;  // prompt, then what was generated; reserved for all there can be
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;  // at least 1, within the context
  bool max_tokens_clamped = false;
  std::vector<int32_t> end_ids;  // sorted: the model's end tokens (unless ignored) and the request's
  sampling::SamplerChain sampler;
  std::optional<text::Detokenizer> detokenizer;  // none: ids only
  StopMatcher stops;

  Stage stage = Stage::kWaiting;
  int64_t computed = 0;  // tokens whose K/V is in the cache
  cache::SequenceBlocks blocks;

  Clock::time_point submitted, started, first_token;
  bool has_started = false;

  int64_t generated() const { return static_cast<int64_t>(ids.size()) - prompt_tokens; }
};

}  // namespace vedette::engine
