#include "sampling/sampling.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "sampling/links.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

// The highest logit, the lowest id among equals; -1 if there is none above -infinity.
int32_t argmax(const std::vector<Candidate>& candidates) {
  const float best = max_logit(candidates);
  if (best == kMinusInfinity) return -1;
  for (const Candidate& candidate : candidates)
    if (candidate.logit == best) return candidate.id;
  return -1;
}

// argmax of logit + g. Exact although most candidates are skipped: a candidate is passed over only where the bound on
// its noise shows that it cannot win.
int32_t gumbel_argmax(const std::vector<Candidate>& candidates, const NoiseKey& key, int64_t position) {
  const int32_t likely = argmax(candidates);
  if (likely < 0) return -1;
  PhiloxBlock words = noise_block(key, position, static_cast<uint32_t>(likely) / 4);
  uint32_t words_block = static_cast<uint32_t>(likely) / 4;
  int32_t winner = likely;
  double best = static_cast<double>(max_logit(candidates)) + gumbel(words[static_cast<uint32_t>(likely) % 4]);
  float floor = static_cast<float>(best - kGumbelMax - 1e-3 * (1 + std::abs(best)));  // rounded down, surely
  for (const Candidate& candidate : candidates) {
    if (candidate.logit < floor) continue;
    const uint32_t id = static_cast<uint32_t>(candidate.id);
    if (id / 4 != words_block) {
      words_block = id / 4;
      words = noise_block(key, position, words_block);
    }
    const uint32_t word = words[id % 4];
    if (candidate.logit + gumbel_bound(word) < best) continue;
    const double score = candidate.logit + gumbel(word);
    if (score > best || (score == best && candidate.id < winner)) {
      best = score;
      winner = candidate.id;
      floor = static_cast<float>(best - kGumbelMax - 1e-3 * (1 + std::abs(best)));
    }
  }
  return winner;
}

// In the default order nothing removes the best candidate before top_k.
bool is_greedy(const SamplingParams& params) {
  return params.temperature == 0 || (params.top_k == 1 && params.order.empty() && params.mirostat == 0);
}

// The tokens that a constraint does not allow go to -infinity.
void mask(std::vector<Candidate>& candidates, std::span<const uint32_t> allowed) {
  const size_t n = candidates.size();
  for (size_t begin = 0; begin < n; begin += 32) {
    const uint32_t word = allowed[begin / 32];
    if (word == ~0u) continue;
    const size_t end = std::min(n, begin + 32);
    for (size_t i = begin; i < end; ++i)
      if ((word >> (i - begin) & 1) == 0) candidates[i].logit = kMinusInfinity;
  }
}

}  // namespace

SamplerChain::SamplerChain(const SamplingParams& params, uint64_t seed, int64_t vocab_size)
    : seed_(seed), choice_(params.choice), greedy_(is_greedy(params)) {
  SamplingParams seeded = params;
  seeded.seed = seed;
  for (const Link* link : chain_links(params, greedy_))
    if (auto sampler = link->make(seeded, vocab_size)) samplers_.push_back(std::move(sampler));
  candidates_.reserve(static_cast<size_t>(vocab_size));
}

SamplerChain::SamplerChain(const SamplerChain& other)
    : seed_(other.seed_), choice_(other.choice_), greedy_(other.greedy_) {
  for (const auto& sampler : other.samplers_) samplers_.push_back(sampler->clone());
  candidates_.reserve(other.candidates_.capacity());
}

SamplerChain& SamplerChain::operator=(const SamplerChain& other) {
  if (this != &other) *this = SamplerChain(other);
  return *this;
}

Result<int32_t> SamplerChain::sample(std::span<const float> logits, const History& history, int64_t position,
                                     std::span<const uint32_t> allowed) {
  if (!allowed.empty() && allowed.size() < (logits.size() + 31) / 32)
    return internal_error("", "position {}: a constraint of {} words cannot cover {} logits", position, allowed.size(),
                          logits.size());
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {static_cast<int32_t>(i), tame(logits[i])};
  if (!allowed.empty()) mask(candidates_, allowed);
  History here = history;
  here.position = position;
  here.allowed = allowed;
  for (const auto& sampler : samplers_) sampler->apply(candidates_, here);
  const int32_t token =
      greedy_ ? argmax(candidates_) : gumbel_argmax(candidates_, {seed_, choice_, Purpose::kToken}, position);
  if (token >= 0) return token;
  for (const std::string_view bias : {"logit_bias", "language_bias"}) {
    const auto is_it = [&](const auto& sampler) { return sampler->name() == bias; };
    if (std::any_of(samplers_.begin(), samplers_.end(), is_it))
      return invalid_request(std::string(bias), "{}: forbids every token that may come at position {}{}; allow one",
                             bias, position, allowed.empty() ? "" : " by the output's constraint");
  }
  return internal_error("", "position {}: none of {} logits{} is a number above -infinity, no token can be chosen",
                        position, logits.size(), allowed.empty() ? "" : " that the constraint allows");
}

uint64_t draw_seed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) == static_cast<ssize_t>(sizeof seed)) return seed;
  // Without the system call the clock must do; a seed is no secret.
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) * 0x9E3779B97F4A7C15u;
}

}  // namespace vedette::sampling
