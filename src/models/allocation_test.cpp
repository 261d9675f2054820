// Steps allocate nothing once the first has run: every allocation of this test program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "models/fixture_test.h"
#include "ops/cpu/cpu_backend.h"

namespace {
std::atomic<int64_t> g_allocations{0};
}  // namespace

// Sanitizers bring their own allocator; the plain build is where this counts.
#if !defined(__SANITIZE_ADDRESS__)
void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace vedette::models {
namespace {

TEST(Allocation, StepsAllocateNothingAfterTheFirst) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "allocations are not counted under a sanitizer";
#endif
  for (const std::string name : {"gemma3", "cohere", "gpt2"}) {
    const auto checkpoint = weights::open_checkpoint(fixture_folder() + "/" + name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    auto backend = ops::cpu::make_cpu_backend({.compute = ops::Compute::kI16, .threads = 2});
    ASSERT_TRUE(backend.ok());
    const auto decoder = load_decoder(*checkpoint, std::move(*backend));
    ASSERT_TRUE(decoder);
    ops::Step step;
    step.sequences.resize(1);
    step.sequences[0].block_tables.assign(decoder->kv_groups().size(), {0, 1});
    step.rows.resize(4);
    step.sequences[0].n_rows = 4;
    int64_t counted = -1;
    for (int round = 0; round < 6; ++round) {
      for (size_t i = 0; i < step.rows.size(); ++i) {
        step.rows[i].value = static_cast<int32_t>(round + 7 * static_cast<int>(i));
        step.rows[i].position[0] = 4 * round + static_cast<int32_t>(i);
        step.rows[i].wants_logits = i + 1 == step.rows.size();
      }
      const int64_t before = g_allocations;
      const Status status = decoder->run(step);
      counted = g_allocations - before;
      ASSERT_TRUE(status.ok());
      if (round > 0) {
        EXPECT_EQ(counted, 0) << name << " round " << round;
      }
    }
    const int64_t before = g_allocations;
    const std::vector<int>* probe = new std::vector<int>(3);
    EXPECT_GT(g_allocations, before);  // the counter counts
    delete probe;
  }
}

}  // namespace
}  // namespace vedette::models
