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
#include "sampling/sampling.h"
#include "text/tokenizer.h"

namespace vedette::engine {

enum class FinishReason : uint8_t { kStop, kLength, kCancelled, kError };
const char* to_string(FinishReason reason);  // "stop", "length", "cancelled", "error"

struct GenerateRequest {
  std::vector<int32_t> prompt;
  int64_t max_tokens = -1;        // -1: until a stop or the context is full; clamped to the context and reported
  std::vector<std::string> stop;  // texts; the match and what follows are not emitted
  std::vector<int32_t> stop_ids;  // besides the model's own end tokens
  bool ignore_eos = false;
  sampling::SamplingParams sampling;
  bool special_in_text = false;  // special tokens appear in the text
};

struct Timings {
  double queue_ms = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
};

struct Event {
  enum class Kind : uint8_t { kTokens, kFinished } kind = Kind::kTokens;
  std::vector<int32_t> ids;  // kTokens: new ids (the end token included, its text is not)
  std::string text;          // new text: complete UTF-8, never taken back
  // kFinished
  FinishReason reason = FinishReason::kStop;
  std::string stop_text;  // the stop string that matched
  std::optional<Error> error;
  Timings timings;
  uint64_t seed = 0;
  bool max_tokens_clamped = false;
};

using EventSink = std::function<void(const Event&)>;
using RequestId = uint64_t;

struct EngineConfig {
  int64_t context_length = 0;  // 0: the model's own, lowered to what the K/V pool holds
  int max_sequences = 8;       // decoded together
  int prefill_chunk = 512;     // rows of a prefill chunk
  int grant_interval = 16;     // a parked prefill gets a chunk after at most this many decode steps
  // Asked after every step, e.g. whether mapped weights are still whole; an error ends that step's sequences.
  std::function<Status()> health = {};
};

class Engine {
 public:
  // decoder and tokenizer are handed over; eos are the model's end-of-generation ids.
  static Result<std::unique_ptr<Engine>> start(std::unique_ptr<models::Decoder> decoder, text::Tokenizer tokenizer,
                                               std::vector<int32_t> eos, const EngineConfig& config);
  ~Engine();  // cancels everything, joins the thread

  // Refuses at once (kInvalidRequest, kOutOfBudget) what can never run: an empty prompt, ids outside the vocabulary,
  // a prompt that fills the context window (both numbers in the message), bad sampling parameters.
  Result<RequestId> submit(GenerateRequest request, EventSink sink);
  void cancel(RequestId id);

  const text::Tokenizer& tokenizer() const;
  const models::DecoderSpec& spec() const;
  int64_t context_length() const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::engine
