// A counter over operator new proves that sampling allocates nothing per token after the first.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

#include "sampling/logprobs.h"
#include "sampling/loop_detector.h"
#include "sampling/sampling.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Not inlined: the compiler would take malloc and operator delete for a mismatched pair.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace vedette::sampling {
namespace {

TEST(Allocation, NonePerToken) {
  constexpr int64_t kVocab = 5000;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocab);
  const std::vector<uint32_t> allowed((kVocab + 31) / 32, 0xfffffffeu);
  const auto table = std::make_shared<const std::vector<float>>(kVocab, 0.5f);
  const auto breakers = std::make_shared<const std::vector<std::vector<int32_t>>>(
      std::vector<std::vector<int32_t>>{{7}, {8, 9}, {10, 11, 12}});
  const SamplingParams variants[] = {
      {},
      {.temperature = 1},
      {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05},
      {.temperature = 1.2,
       .top_p = 0.9,
       .repetition_penalty = 1.1,
       .presence_penalty = 0.3,
       .repeat_last_n = 64,
       .logit_bias = {{3, -1.f}}},
      {.temperature = 1, .dry_multiplier = 0.8, .dry_allowed_length = 0, .dry_breakers = breakers},
      {.temperature = 1, .dry_multiplier = 0.8, .dry_penalty_last_n = 50},
      {.temperature = 1, .top_n_sigma = 1.5},
      {.temperature = 1, .typical_p = 0.8},
      {.temperature = 1, .p_less = true},
      {.temperature = 1, .xtc_probability = 0.5, .xtc_threshold = 0.01},
      {.temperature = 1, .dynatemp_range = 0.5, .dynatemp_exponent = 1.5},
      {.temperature = 1, .mirostat = 1},
      {.temperature = 1, .mirostat = 2},
      {.temperature = 1, .adaptive_target = 0.3, .order = {"min_p", "adaptive_p"}},
      {.temperature = 1, .bias_table = table},
      {.temperature = 1, .top_k = 40, .presence_penalty = 1, .order = {"top_k", "penalties", "temperature"}},
  };
  for (const SamplingParams& params : variants) {
    SamplerChain chain(params, 1, kVocab);
    std::vector<int32_t> history = {1, 2, 3};
    history.reserve(1000);
    const auto generate = [&](SamplerChain& from) {
      int64_t before = 0;
      for (int64_t i = 0; i < 120; ++i) {
        for (float& logit : logits) logit = normal(random);
        if (i == 1) before = allocations;
        history.push_back(*from.sample(logits, {history, 3}, static_cast<int64_t>(history.size()), allowed));
      }
      EXPECT_EQ(allocations - before, 0) << "variant " << &params - variants;
    };
    generate(chain);
    SamplerChain clone = chain;
    generate(clone);
  }
}

TEST(Allocation, NoneOfTheLoopDetectorAndTheLogprobs) {
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 7919 % 5000) * 0.01f;
  LoopDetector detector({.max_pattern_size = 20, .min_count = 3});
  std::vector<TokenLogprob> top;
  token_logprobs(logits, 0, 20, top);
  const int64_t before = allocations;
  for (int32_t i = 0; i < 100; ++i) {
    token_logprobs(logits, i, 20, top);
    detector.push(i % 7);
  }
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace
}  // namespace vedette::sampling
