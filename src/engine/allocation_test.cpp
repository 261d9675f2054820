// Decoding allocates nothing per token, on any of the engine's threads: the C library's allocator is counted in this
// test program, and with it operator new, Rust and aligned memory, which all take theirs from there.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "engine/engine_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VEDETTE_ALLOCATIONS_COUNTED 0
#else
#define VEDETTE_ALLOCATIONS_COUNTED 1
#endif

namespace {
std::atomic<int64_t> g_allocations{0};
}  // namespace

#if VEDETTE_ALLOCATIONS_COUNTED
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++g_allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++g_allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  ++g_allocations;
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++g_allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  ++g_allocations;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif

namespace vedette::engine {
namespace {

// What one request's stream has cost at some of its tokens; read by the test when all is done. Counts come from the
// sink, so between two of them lies all that the engine's threads did for the tokens between, and nothing of the test,
// which waits. An engine allocates once what depends on the longest context it has seen (attention's partial results),
// so each test runs one request first.
class Counts {
 public:
  static constexpr std::array<size_t, 3> kTokens = {50, 150, 450};

  EventSink sink(bool held) {
    return [this, held](const Event& event) {
      if (held && tokens_ == 0) {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return released_; }));
      }
      tokens_ += event.ids.size();
      logprobs_ += event.logprobs.size();
      bytes_ += event.text.size();
      for (size_t i = 0; i < kTokens.size(); ++i)
        if (event.kind == Event::Kind::kTokens && tokens_ == kTokens[i]) counts_[i] = g_allocations;
      if (event.kind != Event::Kind::kFinished) return;
      reason_ = event.reason;
      const std::scoped_lock lock(mutex_);
      finished_ = true;
      changed_.notify_all();
    };
  }
  void release() {
    const std::scoped_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return finished_; });
  }

  int64_t between(size_t i) const { return counts_[i + 1] - counts_[i]; }
  size_t tokens() const { return tokens_; }
  size_t logprobs() const { return logprobs_; }
  size_t bytes() const { return bytes_; }
  FinishReason reason() const { return reason_; }

 private:
  size_t tokens_ = 0, logprobs_ = 0, bytes_ = 0;
  std::array<int64_t, kTokens.size()> counts_ = {};
  FinishReason reason_ = FinishReason::kError;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false, finished_ = false;
};

struct Variant {
  const char* name;
  GenerateRequest request;
};

class Allocations : public Engines {
 protected:
  void SetUp() override {
    if (!VEDETTE_ALLOCATIONS_COUNTED) GTEST_SKIP() << "a sanitizer brings its own allocator";
  }

  static constexpr int64_t kMaxTokens = 460;

  // Runs them together. The first stands still at its first token until all are there.
  std::vector<std::unique_ptr<Counts>> run_all(Engine& engine, const std::vector<Variant>& requests) {
    std::vector<std::unique_ptr<Counts>> all;
    for (size_t i = 0; i < requests.size(); ++i) all.push_back(std::make_unique<Counts>());
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto id = engine.submit(requests[i].request, all[i]->sink(i == 0));
      EXPECT_TRUE(id.ok()) << requests[i].name;
    }
    all[0]->release();
    for (size_t i = 0; i < requests.size(); ++i) {
      const Counts& counts = *all[i];
      EXPECT_TRUE(all[i]->wait()) << requests[i].name;
      EXPECT_EQ(counts.tokens(), static_cast<size_t>(kMaxTokens)) << requests[i].name;
      EXPECT_EQ(counts.reason(), FinishReason::kLength) << requests[i].name;
      EXPECT_GT(counts.bytes(), counts.tokens()) << requests[i].name;
      EXPECT_EQ(counts.logprobs(), requests[i].request.logprobs >= 0 ? counts.tokens() : 0) << requests[i].name;
    }
    return all;
  }

  std::vector<Variant> variants() {
    std::vector<Variant> all;
    GenerateRequest plain = request(40, kMaxTokens);
    plain.sampling.temperature = 0;
    all.push_back({"greedy", plain});
    GenerateRequest sampled = request(40, kMaxTokens);
    sampled.sampling.top_k = 40;
    sampled.sampling.top_p = 0.95;
    sampled.sampling.min_p = 0.01;
    sampled.sampling.repetition_penalty = 1.1;
    sampled.sampling.presence_penalty = 0.2;
    sampled.sampling.frequency_penalty = 0.1;
    sampled.sampling.dry_multiplier = 0.8;
    all.push_back({"sampled with penalties and DRY", sampled});
    GenerateRequest logprobs = request(40, kMaxTokens);
    logprobs.logprobs = 5;
    all.push_back({"log probabilities", logprobs});
    GenerateRequest stops = request(40, kMaxTokens);
    stops.stop = {"a0.never", "b0.b0.b0.b0.b0.b0.b0.b0.", "z9.z9.z9.z9.z9.z9."};
    stops.loop = {.max_pattern = 20, .min_pattern = 5, .min_count = 50};
    stops.special_in_text = true;
    all.push_back({"stop texts and loop limits", stops});
    return all;
  }
};

TEST_F(Allocations, NonePerToken) {
  const auto engine = start(512, 8);  // room for all that these leave in the prefix cache
  run_all(*engine, {{"warm-up", request(40, kMaxTokens, 9)}});
  for (const Variant& variant : variants()) {
    const auto counts = run_all(*engine, {variant});
    EXPECT_EQ(counts[0]->between(0), 0) << variant.name << ", tokens 50 to 150";
    EXPECT_EQ(counts[0]->between(1), 0) << variant.name << ", tokens 150 to 450";
  }
}

TEST_F(Allocations, NonePerTokenOfABatch) {
  EngineConfig config;
  config.grant_interval = 1;  // all of them decode long before the first counts
  const auto engine = start(512, 8, {2}, config);
  run_all(*engine, variants());
  const auto counts = run_all(*engine, variants());
  // At the first ones' ends others still run.
  for (const auto& each : counts) EXPECT_EQ(each->between(0), 0);
}

// What remains: where blocks are short, a sequence that enters its next block has the prefix cache give one up, and the
// cache's orders of what to give up next get an entry for the node that lost its block and one for the node above it.
TEST_F(Allocations, TwoPerBlockTakenBackFromThePrefixCache) {
  const auto engine = start(512, 1);
  run_all(*engine, {{"fills the pool", request(40, kMaxTokens, 1)}});
  const int64_t before = engine->stats().cache_evictions;
  const auto counts = run_all(*engine, {{"takes it over", request(40, kMaxTokens, 2)}});
  EXPECT_GT(engine->stats().cache_evictions, before);
  const int64_t tokens = Counts::kTokens[2] - Counts::kTokens[1];
  EXPECT_LE(counts[0]->between(1), 2 * (tokens / ops::kBlockTokens + 1));
}

TEST_F(Allocations, TheCounterCounts) {
  const int64_t before = g_allocations;
  std::vector<int> probe(3);
  std::string text(100, static_cast<char>('a' + probe[0]));
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 64, 64), 0);
  std::free(aligned);
  EXPECT_GE(g_allocations - before, text.empty() ? 4 : 3);
}

}  // namespace
}  // namespace vedette::engine
