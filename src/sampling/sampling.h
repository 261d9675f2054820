// Sampling: one logits chain, counter-based Gumbel noise.
//
// A draw at temperature T > 0 is argmax over the kept set of (logit / T + g), with g a standard Gumbel variate
// from a counter-based generator keyed by (seed, choice, purpose, absolute position, token id). So a token depends
// on the logits, the parameters and the seed alone: not on the batch, the chunking or how often it is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vedette::sampling {

// Names, meanings and defaults of llama-server's chain, but that everything is off until asked for.
struct SamplingParams {
  double temperature = 0;     // 0: greedy
  double dynatemp_range = 0;  // 0: off
  double dynatemp_exponent = 1;
  int64_t top_k = 0;  // 0 or below: off
  double top_p = 1;
  double min_p = 0;
  double typical_p = 1;
  double top_n_sigma = -1;  // 0 or below: off
  double xtc_probability = 0;
  double xtc_threshold = 0.1;     // above 0.5: no effect
  bool p_less = false;            // p >= sum p^2, at the temperature
  double repetition_penalty = 1;  // over the last repeat_last_n tokens, prompt included
  double frequency_penalty = 0;
  double presence_penalty = 0;
  int64_t repeat_last_n = -1;  // -1: whole history; 0: off
  double dry_multiplier = 0;   // 0: off
  double dry_base = 1.75;
  int64_t dry_allowed_length = 2;
  int64_t dry_penalty_last_n = -1;  // -1: whole history; 0: off
  // Token sequences over which no repetition is counted (a breaker text as the vocabulary may write it).
  std::shared_ptr<const std::vector<std::vector<int32_t>>> dry_breakers = {};
  int mirostat = 0;  // 1, 2: in place of the truncating samplers
  double mirostat_tau = 5;
  double mirostat_eta = 0.1;
  double adaptive_target = -1;  // below 0: off; runs only where `order` names adaptive_p
  double adaptive_decay = 0.9;
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  // Added to every logit, by token id; of a model's languages. Null: none.
  std::shared_ptr<const std::vector<float>> bias_table = {};
  // Needed where `order` names infill.
  std::shared_ptr<const class InfillVocabulary> infill_vocabulary = {};
  // Order of the links by name, those not named are left out; empty: the default order, which mirostat always has.
  std::vector<std::string> order = {};
  std::optional<uint64_t> seed = {};  // absent: drawn and reported
  uint32_t choice = 0;                // index among n choices
};

// Errors: kInvalidRequest naming the field, its value and the range.
Status validate(const SamplingParams& params);

// The order that llama-server's string of letters means ("edskypmxt"). Errors: kInvalidRequest.
Result<std::vector<std::string>> order_of_letters(std::string_view letters);
std::string known_letters();
// Whether `order` has infill, which needs infill_vocabulary.
bool names_infill(const SamplingParams& params);

// One sampling position's view of the tokens before it (prompt and generated).
struct History {
  std::span<const int32_t> tokens;
  int64_t prompt_tokens = 0;
  // The chain fills these in: of the token to be chosen, and the words of the constraint (empty: every token).
  int64_t position = 0;
  std::span<const uint32_t> allowed = {};
};

// A kept candidate. The chain starts with every token of the vocabulary.
struct Candidate {
  int32_t id;
  float logit;
};

// One link of the chain. Edits candidates in place: logits, or removal. Candidates stay in ascending id order (biases
// find candidates[id].id == id). Logits are finite or -infinity, and stay so; a best one is always left.
// State (if any) must be copyable by clone(), because rows under verification are sampled in order and may be rolled
// back: a history is only ever extended, going back means going back to a clone.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual const char* name() const = 0;
  virtual void apply(std::vector<Candidate>& candidates, const History& history) = 0;
  virtual std::unique_ptr<Sampler> clone() const = 0;
};

// Owned by one sequence; engine thread. Scratch is re-used: nothing is allocated per token after the first, but that
// what DRY keeps of a long history grows with it in large steps.
class SamplerChain {
 public:
  // Expects validated params; `seed` is params.seed or the one drawn for it.
  SamplerChain(const SamplingParams& params, uint64_t seed, int64_t vocab_size);
  SamplerChain(const SamplerChain& other);
  SamplerChain& operator=(const SamplerChain& other);
  SamplerChain(SamplerChain&&) noexcept = default;
  SamplerChain& operator=(SamplerChain&&) noexcept = default;

  // The token for absolute position `position` (the position the token itself will have). NaN counts as -infinity;
  // kInternal if no token is left with a finite logit.
  // allowed: the words of a Constraint; empty: every token. kInternal if they allow no token that has a finite logit,
  // or are too few for the row.
  Result<int32_t> sample(std::span<const float> logits, const History& history, int64_t position,
                         std::span<const uint32_t> allowed = {});
  uint64_t seed() const { return seed_; }

 private:
  uint64_t seed_;
  uint32_t choice_;
  bool greedy_;
  std::vector<std::unique_ptr<Sampler>> samplers_;
  std::vector<Candidate> candidates_;
};

// Fresh seed from the operating system.
uint64_t draw_seed();

}  // namespace vedette::sampling
