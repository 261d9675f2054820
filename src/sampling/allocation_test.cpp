// A counter over operator new proves that sampling allocates nothing per token after the first.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

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
  };
  for (const SamplingParams& params : variants) {
    SamplerChain chain(params, 1, kVocab);
    std::vector<int32_t> history = {1, 2, 3};
    history.reserve(1000);
    int64_t before = 0;
    for (int64_t i = 0; i < 300; ++i) {
      for (float& logit : logits) logit = normal(random);
      if (i == 1) before = allocations;
      history.push_back(*chain.sample(logits, {history, 3}, static_cast<int64_t>(history.size())));
    }
    EXPECT_EQ(allocations - before, 0);
  }
}

}  // namespace
}  // namespace vedette::sampling
