// The engine: one thread owns a model's state; everyone else talks to it by message.
//
// submit() may be called from any thread. Events of a request are delivered in order on the engine thread to the
// request's sink, which must not block and must not call back into the engine except cancel().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/decoder.h"
#include "sampling/constraint.h"
#include "sampling/logprobs.h"
#include "sampling/sampling.h"
#include "text/tokenizer.h"

namespace vedette::engine {

enum class FinishReason : uint8_t { kStop, kLength, kCancelled, kError };
const char* to_string(FinishReason reason);  // "stop", "length", "cancelled", "error"

// What a request may take from the prefix cache and leave in it.
struct CacheUse {
  bool enabled = true;
  std::string scope;  // requests of different scopes share nothing (a hash of the API key)
  // Tokens of the prompt that the next turn is expected to repeat (up to the mark that opens the reply); a snapshot
  // of sliding groups is kept there. -1: unknown.
  int64_t history_tokens = -1;
};

// Ends a reply that repeats itself: a pattern of min_pattern to max_pattern tokens, min_count times in a row.
struct LoopLimits {
  int max_pattern = 0;  // 0: off
  int min_pattern = 1;
  int min_count = 2;
};

struct GenerateRequest {
  std::vector<int32_t> prompt;
  // -1: until a stop or the context is full; clamped to the context and reported. 0: the prompt is computed and nothing
  // drawn.
  int64_t max_tokens = -1;
  std::vector<std::string> stop;  // texts; the match and what follows are not emitted
  std::vector<int32_t> stop_ids;  // besides the model's own end tokens
  bool ignore_eos = false;
  sampling::SamplingParams sampling;
  bool special_in_text = false;           // every special token appears in the text
  std::vector<int32_t> visible_specials;  // special tokens that do in any case
  int logprobs = -1;  // 0 to 100: log probabilities of each token and that many alternatives; -1: none
  // Those of the prompt's tokens too (kPrompt events). Nothing is then taken from the prefix cache, since it keeps no
  // logits.
  bool prompt_logprobs = false;
  bool progress = false;  // kProgress events during prefill
  int priority = 0;       // higher ones are admitted first and preempted last
  LoopLimits loop;
  CacheUse cache;
  std::shared_ptr<const sampling::Constraint> constraint;  // the sequence runs a clone; null: every token is allowed
};

// How much of a prompt came from the prefix cache, and where it parted from what was there.
struct CacheReport {
  int64_t cached_tokens = 0;
  // The longest prefix of the prompt that the cache has seen. Less may be re-used: see `reason`.
  int64_t matched_tokens = 0;
  // "" (all that can be re-used was), "cold" (nothing in this scope), "differs" (an earlier prompt parted from this one
  // at matched_tokens), "evicted" (the tokens are known, their K/V was given up), "window" (no snapshot of the sliding
  // layers at that depth), "disabled", "logprobs" (those of the prompt were asked for).
  std::string reason;
  std::vector<int32_t> expected;  // reason "differs": a few ids that stood there before
};

struct Timings {
  double queue_ms = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
};

// Log probabilities of one drawn token: log-softmax of the model's logits, before the sampling chain.
struct TokenLogprobs {
  sampling::TokenLogprob chosen;
  std::vector<sampling::TokenLogprob> top;  // best first, ties to lower ids
};

struct Event {
  enum class Kind : uint8_t { kProgress, kPrompt, kTokens, kFinished } kind = Kind::kTokens;
  std::vector<int32_t> ids;  // kTokens: new ids (the end token included, its text is not)
  std::string text;          // new text: complete UTF-8, never taken back
  // kTokens, where asked for: one entry per id. kPrompt: of the prompt's next tokens, from its second on (nothing
  // predicts the first); all of them come before the first kTokens.
  std::vector<TokenLogprobs> logprobs;
  int64_t prefilled = 0;  // kProgress: prompt tokens whose K/V is there, the cached ones included
  // kFinished
  FinishReason reason = FinishReason::kStop;
  std::string stop_text;  // the stop string that matched
  std::optional<Error> error;
  Timings timings;
  bool by_loop = false;  // ended by LoopLimits (reason kStop)
  uint64_t seed = 0;
  bool max_tokens_clamped = false;
  CacheReport cache;
};

using EventSink = std::function<void(const Event&)>;
using RequestId = uint64_t;

struct EngineConfig {
  int64_t context_length = 0;  // 0: the model's own, lowered to what the K/V pool holds
  int max_sequences = 8;       // decoded together
  int prefill_chunk = 512;     // rows of a prefill chunk
  int grant_interval = 16;     // a parked prefill gets a chunk after at most this many decode steps
  int max_waiting = 32;        // requests admitted to the queue beyond those that run
  bool prefix_cache = true;
  int64_t prefix_cache_tokens = 0;  // most tokens kept by the prefix cache; 0: whatever blocks are free
  int snapshot_interval = 512;      // tokens between snapshots of sliding groups within a prompt
  // What a step with a prefill chunk may take: chunks shrink to it as measured, since a cancel waits for the step. 0:
  // no limit.
  double chunk_ms = 150;
  // Asked after every step, e.g. whether mapped weights are still whole; an error ends that step's sequences.
  std::function<Status()> health = {};
};

// One request as /slots shows it.
struct SlotView {
  RequestId id = 0;
  enum class State : uint8_t { kWaiting, kPrefill, kDecode, kPaused } state = State::kWaiting;
  int priority = 0;
  int64_t prompt_tokens = 0;
  int64_t prefilled_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t max_tokens = 0;
};

// A consistent picture after some step; counters since the start.
struct EngineStats {
  std::vector<SlotView> slots;  // running first, then waiting
  int64_t running = 0, waiting = 0;
  int64_t requests_started = 0, requests_finished = 0, requests_cancelled = 0, requests_failed = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;  // prompt_tokens: computed, without cached
  double prefill_seconds = 0, decode_seconds = 0;                      // of steps; a mixed step counts by its rows
  int64_t steps = 0, decode_rows = 0, prefill_chunks = 0, preemptions = 0;
  int64_t kv_blocks_total = 0, kv_blocks_free = 0, kv_blocks_cached = 0;  // cached: held by the prefix cache alone
  int64_t kv_bytes_total = 0;
  int64_t cache_hits = 0, cache_misses = 0, cache_evictions = 0, cache_entries = 0;
};

class Engine {
 public:
  // decoder and tokenizer are handed over; eos are the model's end-of-generation ids.
  static Result<std::unique_ptr<Engine>> start(std::unique_ptr<models::Decoder> decoder, text::Tokenizer tokenizer,
                                               std::vector<int32_t> eos, const EngineConfig& config);
  ~Engine();  // cancels everything, joins the thread

  // Refuses at once (kInvalidRequest, kOutOfBudget) what can never run: an empty prompt, ids outside the vocabulary,
  // a prompt that fills the context window ("prompt is too long: N tokens > M maximum"), bad parameters; and
  // (kUnavailable) what finds the queue full.
  Result<RequestId> submit(GenerateRequest request, EventSink sink);
  void cancel(RequestId id);
  // A paused sequence keeps its place and its K/V and gets no rows, until resumed or cancelled. Unknown ids are
  // ignored.
  void pause(RequestId id);
  void resume(RequestId id);

  EngineStats stats() const;  // any thread
  void reset_prefix_cache();

  const text::Tokenizer& tokenizer() const;
  const models::DecoderSpec& spec() const;
  int64_t context_length() const;
  int64_t most_requests() const;  // that run and wait together

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::engine
