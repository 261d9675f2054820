// What a server asks of the engine beyond tokens: constraints, log probabilities, progress, priorities, pauses, limits,
// statistics.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "engine/chunk_pace.h"
#include "engine/engine_fixture.h"

namespace vedette::engine {
namespace {

// Allows the given ids in turn; `end`: complete after the last, else every token is free from there on.
class Script : public sampling::Constraint {
 public:
  Script(std::vector<std::vector<int32_t>> steps, bool end) : steps_(std::move(steps)), end_(end) {}
  Result<bool> allowed(std::span<uint32_t> words) override {
    if (at_ >= steps_.size()) return false;
    // Bits beyond the vocabulary are nobody's.
    std::fill(words.begin(), words.end(), 0);
    words.back() = 1u << 31;
    for (const int32_t id : steps_[at_]) words[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
    return true;
  }
  Status accept(int32_t token) override {
    if (at_ < steps_.size() && std::find(steps_[at_].begin(), steps_[at_].end(), token) == steps_[at_].end())
      return Error{ErrorKind::kInternal, "not in the script", ""};
    ++at_;
    return ok_status();
  }
  bool complete() const override { return end_ && at_ >= steps_.size(); }
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<Script>(*this); }

 private:
  std::vector<std::vector<int32_t>> steps_;
  bool end_;
  size_t at_ = 0;
};

class Features : public Engines {};

TEST_F(Features, AConstraintChoosesAmongWhatItAllowsAndEndsTheReply) {
  const auto engine = start();
  GenerateRequest asked = request(30, 20);
  asked.constraint = std::make_shared<Script>(std::vector<std::vector<int32_t>>{{7}, {8, 9, 332}, {40}}, true);
  Collector first, second;
  run(*engine, asked, first);
  run(*engine, asked, second);  // from the start again: each request has a clone
  ASSERT_EQ(first.ids.size(), 3u);
  EXPECT_EQ(first.ids[0], 7);
  EXPECT_TRUE(first.ids[1] == 8 || first.ids[1] == 9 || first.ids[1] == 332);
  EXPECT_EQ(first.ids[2], 40);
  EXPECT_EQ(first.last.reason, FinishReason::kStop);
  EXPECT_EQ(first.text, engine->tokenizer().decode(first.ids));
  EXPECT_EQ(second.ids, first.ids);

  // Free after its end: the draw is as without it.
  asked.constraint = std::make_shared<Script>(std::vector<std::vector<int32_t>>{{7}}, false);
  Collector third;
  run(*engine, asked, third);
  EXPECT_EQ(third.ids.size(), 20u);
  EXPECT_EQ(third.ids[0], 7);
}

TEST_F(Features, AnEmptySetIsTheErrorOfThatRequestAlone) {
  const auto engine = start();
  GenerateRequest healthy = request(30, 60);
  GenerateRequest broken = request(30, 60);
  broken.constraint = std::make_shared<Script>(std::vector<std::vector<int32_t>>{{7}, {}}, true);
  Collector first, second, third;
  ASSERT_TRUE(engine->submit(healthy, first.sink()).ok());
  ASSERT_TRUE(engine->submit(broken, second.sink()).ok());
  ASSERT_TRUE(engine->submit(healthy, third.sink()).ok());
  for (Collector* out : {&first, &second, &third}) ASSERT_TRUE(out->wait());
  EXPECT_EQ(second.ids, std::vector<int32_t>{7});
  EXPECT_EQ(second.last.reason, FinishReason::kError);
  ASSERT_TRUE(second.last.error);
  EXPECT_EQ(second.last.error->message, "position 31: the output's grammar allows no token of this vocabulary");
  EXPECT_EQ(first.last.reason, FinishReason::kLength);
  EXPECT_EQ(third.ids, first.ids);
}

TEST_F(Features, LogProbabilitiesOfEachToken) {
  const auto engine = start();
  GenerateRequest asked = request(30, 12);
  asked.sampling.temperature = 0;
  asked.logprobs = 5;
  Collector with, without;
  run(*engine, asked, with);
  ASSERT_EQ(with.logprobs.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    const TokenLogprobs& one = with.logprobs[i];
    EXPECT_EQ(one.chosen.id, with.ids[i]);
    ASSERT_EQ(one.top.size(), 5u);
    EXPECT_EQ(one.top[0].id, one.chosen.id);  // greedy
    EXPECT_EQ(one.top[0].logprob, one.chosen.logprob);
    EXPECT_LT(one.chosen.logprob, 0);
    for (size_t j = 1; j < 5; ++j) EXPECT_GE(one.top[j - 1].logprob, one.top[j].logprob);
  }
  asked.logprobs = -1;
  run(*engine, asked, without);
  EXPECT_TRUE(without.logprobs.empty());
  EXPECT_EQ(without.ids, with.ids);
  asked.logprobs = 101;
  EXPECT_FALSE(engine->submit(asked, [](const Event&) {}).ok());
}

void expect_same(const TokenLogprobs& a, const TokenLogprobs& b) {
  EXPECT_EQ(a.chosen.id, b.chosen.id);
  EXPECT_EQ(a.chosen.logprob, b.chosen.logprob);
  ASSERT_EQ(a.top.size(), b.top.size());
  for (size_t i = 0; i < a.top.size(); ++i) {
    EXPECT_EQ(a.top[i].id, b.top[i].id);
    EXPECT_EQ(a.top[i].logprob, b.top[i].logprob);
  }
}

void expect_same(const std::vector<TokenLogprobs>& a, const std::vector<TokenLogprobs>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_same(a[i], b[i]);
}

// What a prompt's token gets is what a reply gets that is made to draw it after the tokens before.
TEST_F(Features, LogProbabilitiesOfThePromptAreThoseOfRepliesToItsBeginnings) {
  const auto engine = start();
  GenerateRequest asked = request(40, 3);
  asked.logprobs = 4;
  asked.prompt_logprobs = true;
  Collector out;
  run(*engine, asked, out);
  ASSERT_EQ(out.prompt_logprobs.size(), 39u);
  ASSERT_EQ(out.logprobs.size(), 3u);
  for (size_t i = 1; i < 40; ++i) {
    GenerateRequest forced = asked;
    forced.prompt.resize(i);
    forced.prompt_logprobs = false;
    forced.max_tokens = 1;
    forced.constraint = std::make_shared<Script>(std::vector<std::vector<int32_t>>{{asked.prompt[i]}}, true);
    Collector step;
    run(*engine, forced, step);
    ASSERT_EQ(step.logprobs.size(), 1u);
    expect_same(out.prompt_logprobs[i - 1], step.logprobs[0]);
  }
  // They change nothing else.
  Collector plain;
  asked.prompt_logprobs = false;
  run(*engine, asked, plain);
  EXPECT_TRUE(plain.prompt_logprobs.empty());
  EXPECT_EQ(plain.ids, out.ids);
  expect_same(plain.logprobs, out.logprobs);
  asked.prompt_logprobs = true;
  asked.logprobs = -1;
  EXPECT_FALSE(engine->submit(asked, [](const Event&) {}).ok());
}

TEST_F(Features, LogProbabilitiesOfThePromptDoNotDependOnChunksNeighboursOrTheCache) {
  GenerateRequest asked = request(150, 2);
  asked.logprobs = 2;
  asked.prompt_logprobs = true;
  Collector first;
  {
    const auto engine = start();
    run(*engine, asked, first);
    ASSERT_EQ(first.prompt_logprobs.size(), 149u);
    Collector again;
    run(*engine, asked, again);
    EXPECT_EQ(again.last.timings.cached_tokens, 0);
    EXPECT_EQ(again.last.cache.reason, "logprobs");
    expect_same(again.prompt_logprobs, first.prompt_logprobs);
    Collector warm;  // what it leaves others may take
    run(*engine, request(150, 2), warm);
    EXPECT_EQ(warm.last.timings.cached_tokens, 128);
    EXPECT_EQ(warm.ids, first.ids);
  }
  EngineConfig config;
  config.prefill_chunk = 7;
  const auto engine = start(512, 8, {2}, config);
  Collector busy[4], among;
  for (Collector& one : busy) ASSERT_TRUE(engine->submit(request(20, 200, 9), one.sink()).ok());
  run(*engine, asked, among);
  for (Collector& one : busy) ASSERT_TRUE(one.wait());
  expect_same(among.prompt_logprobs, first.prompt_logprobs);
}

TEST_F(Features, LogProbabilitiesOfThePromptAreToldOnceEvenIfItIsComputedTwice) {
  const auto engine = start(256, 1);
  GenerateRequest asked = request(150, 30);
  asked.logprobs = 2;
  asked.prompt_logprobs = true;
  asked.progress = true;
  Collector alone, paused, big;
  run(*engine, asked, alone);
  engine->reset_prefix_cache();
  paused.hold_at_progress = 6;
  const RequestId id = *engine->submit(asked, paused.sink());
  ASSERT_TRUE(paused.wait_until_held());
  engine->pause(id);
  paused.release();
  run(*engine, request(230, 20, 5), big);
  EXPECT_GE(engine->stats().preemptions, 1);
  engine->resume(id);
  ASSERT_TRUE(paused.wait());
  EXPECT_EQ(paused.ids, alone.ids);
  expect_same(paused.prompt_logprobs, alone.prompt_logprobs);
}

TEST_F(Features, WithoutTokensToDrawThePromptIsComputedAndKept) {
  const auto engine = start();
  Collector warmed, used, told;
  run(*engine, request(100, 0), warmed);
  EXPECT_TRUE(warmed.ids.empty());
  EXPECT_EQ(warmed.text, "");
  EXPECT_EQ(warmed.last.reason, FinishReason::kLength);
  EXPECT_EQ(warmed.last.timings.generated_tokens, 0);
  run(*engine, request(100, 3), used);
  EXPECT_EQ(used.last.timings.cached_tokens, 96);
  GenerateRequest asked = request(100, 0);
  asked.logprobs = 0;
  asked.prompt_logprobs = true;
  run(*engine, asked, told);
  EXPECT_TRUE(told.ids.empty());
  EXPECT_EQ(told.prompt_logprobs.size(), 99u);
}

TEST_F(Features, VisibleSpecialsAppearInTheText) {
  const auto engine = start();
  GenerateRequest asked = request(30, 20);
  asked.constraint = std::make_shared<Script>(std::vector<std::vector<int32_t>>{{7}, {1}, {8}, {2}, {9}}, true);
  Collector hidden, shown;
  run(*engine, asked, hidden);
  EXPECT_EQ(hidden.text, engine->tokenizer().decode(std::vector<int32_t>{7, 8, 9}));
  asked.visible_specials = {2};
  run(*engine, asked, shown);
  EXPECT_EQ(shown.text, engine->tokenizer().decode(std::vector<int32_t>{7, 8}) + "</s>" +
                            engine->tokenizer().decode(std::vector<int32_t>{9}));
}

TEST_F(Features, ProgressOfAPrefill) {
  const auto engine = start();
  GenerateRequest asked = request(200, 3);
  asked.progress = true;
  Collector cold, warm;
  run(*engine, asked, cold);
  ASSERT_GE(cold.progress.size(), 3u);
  EXPECT_EQ(cold.progress.front(), 0);
  EXPECT_EQ(cold.progress.back(), 200);
  EXPECT_TRUE(std::is_sorted(cold.progress.begin(), cold.progress.end()));
  run(*engine, asked, warm);
  EXPECT_EQ(warm.progress, (std::vector<int64_t>{192, 200}));
  EXPECT_EQ(warm.last.timings.cached_tokens, 192);
  EXPECT_EQ(warm.ids, cold.ids);
}

TEST_F(Features, ALoopEndsTheReply) {
  const auto engine = start();
  GenerateRequest asked = request(30, 20);
  asked.constraint =
      std::make_shared<Script>(std::vector<std::vector<int32_t>>{{7}, {8}, {9}, {8}, {9}, {8}, {9}, {8}, {9}}, true);
  asked.loop = {.max_pattern = 4, .min_pattern = 1, .min_count = 3};
  Collector out;
  run(*engine, asked, out);
  EXPECT_EQ(out.ids, (std::vector<int32_t>{7, 8, 9, 8, 9, 8, 9}));
  EXPECT_EQ(out.last.reason, FinishReason::kStop);
  EXPECT_TRUE(out.last.by_loop);
}

TEST_F(Features, AHigherPriorityIsAdmittedFirst) {
  EngineConfig config;
  config.max_sequences = 1;
  const auto engine = start(512, 8, {2}, config);
  std::mutex mutex;
  std::vector<int> order;
  Collector out[4];
  const int priorities[] = {0, 0, 5, 1};
  out[0].hold_at_tokens = 1;
  for (int i = 0; i < 4; ++i) {
    GenerateRequest asked = request(20, i == 0 ? 200 : 3, static_cast<uint64_t>(i));
    asked.priority = priorities[i];
    ASSERT_TRUE(engine
                    ->submit(asked,
                             [&, i, sink = out[i].sink()](const Event& event) {
                               if (event.kind == Event::Kind::kFinished) {
                                 const std::scoped_lock lock(mutex);
                                 order.push_back(i);
                               }
                               sink(event);
                             })
                    .ok());
    if (i == 0) {
      ASSERT_TRUE(out[0].wait_until_held());
    }
  }
  out[0].release();
  for (Collector& one : out) ASSERT_TRUE(one.wait());
  EXPECT_EQ(order, (std::vector<int>{0, 2, 3, 1}));
}

TEST_F(Features, AFullQueueRefuses) {
  EngineConfig config;
  config.max_sequences = 1;
  config.max_waiting = 2;
  const auto engine = start(512, 8, {2}, config);
  Collector out[3], late;
  std::vector<RequestId> ids;
  out[0].hold_at_tokens = 1;
  for (Collector& one : out) ids.push_back(*engine->submit(request(20, 400), one.sink()));
  ASSERT_TRUE(out[0].wait_until_held());
  const auto refused = engine->submit(request(20, 5), [](const Event&) { FAIL(); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(refused.error().message, "the queue is full: 2 requests wait (limit 2); try again later");
  engine->cancel(ids[1]);
  out[0].release();
  ASSERT_TRUE(out[1].wait());
  EXPECT_TRUE(engine->submit(request(20, 5), late.sink()).ok());  // its place is free as soon as its end is told
  for (const RequestId id : ids) engine->cancel(id);
  ASSERT_TRUE(late.wait());
}

TEST_F(Features, APausedRequestStandsStillAndStallsNobody) {
  EngineConfig config;
  config.max_sequences = 2;
  const auto engine = start(512, 2, {2}, config);
  Collector alone;
  run(*engine, request(40, 300), alone);
  Collector paused[2], other[3];
  RequestId ids[2];
  for (int i = 0; i < 2; ++i) {
    paused[i].hold_at_tokens = 3;
    ids[i] = *engine->submit(request(40, 300), paused[i].sink());
    ASSERT_TRUE(paused[i].wait_until_held());
    engine->pause(ids[i]);
    paused[i].release();
  }
  for (Collector& one : other) run(*engine, request(50, 20, 9), one);
  const EngineStats stats = engine->stats();
  ASSERT_EQ(stats.slots.size(), 2u);
  for (const SlotView& slot : stats.slots) EXPECT_EQ(slot.state, SlotView::State::kPaused);
  for (int i = 0; i < 2; ++i) {
    const std::scoped_lock lock(paused[i].mutex);
    EXPECT_LT(paused[i].ids.size(), 300u);
    EXPECT_EQ(static_cast<int64_t>(paused[i].ids.size()), stats.slots[static_cast<size_t>(i)].generated_tokens);
  }
  for (const RequestId id : ids) engine->resume(id);
  for (Collector& one : paused) {
    ASSERT_TRUE(one.wait());
    EXPECT_EQ(one.ids, alone.ids);
  }
  engine->pause(12345);  // gone: no effect
}

// The pool holds little more than one context: others take a paused one's blocks, and it is none the worse for it.
TEST_F(Features, APausedRequestGivesWayWhenBlocksAreShort) {
  const auto engine = start(256, 1);
  Collector alone, paused, big;
  run(*engine, request(100, 100), alone);
  engine->reset_prefix_cache();
  paused.hold_at_tokens = 3;
  const RequestId id = *engine->submit(request(100, 100), paused.sink());
  ASSERT_TRUE(paused.wait_until_held());
  engine->pause(id);
  paused.release();
  run(*engine, request(200, 50, 5), big);
  EXPECT_EQ(big.ids.size(), 50u);
  EXPECT_GE(engine->stats().preemptions, 1);
  engine->resume(id);
  ASSERT_TRUE(paused.wait());
  EXPECT_EQ(paused.ids, alone.ids);
}

TEST_F(Features, StatisticsAddUp) {
  const auto engine = start();
  EXPECT_EQ(engine->stats().kv_blocks_free, engine->stats().kv_blocks_total);
  Collector one, two, three;
  run(*engine, request(100, 20), one);
  run(*engine, request(100, 20), two);  // 96 tokens from the cache
  GenerateRequest asked = request(100, 20, 7);
  asked.cache.enabled = false;
  run(*engine, asked, three);
  EXPECT_EQ(three.last.cache.reason, "disabled");
  EngineStats stats = engine->stats();
  EXPECT_TRUE(stats.slots.empty());
  EXPECT_EQ(stats.requests_started, 3);
  EXPECT_EQ(stats.requests_finished, 3);
  EXPECT_EQ(stats.generated_tokens, 60);
  EXPECT_EQ(stats.cached_tokens, 96);
  EXPECT_EQ(stats.prompt_tokens, 204);
  EXPECT_EQ(stats.decode_rows, 3 * 19);
  EXPECT_EQ(stats.cache_hits, 1);
  EXPECT_EQ(stats.cache_misses, 1);
  EXPECT_GT(stats.cache_entries, 0);
  EXPECT_GT(stats.kv_bytes_total, 0);
  EXPECT_GT(stats.prefill_seconds, 0);
  EXPECT_GT(stats.decode_seconds, 0);
  EXPECT_EQ(stats.kv_blocks_free + stats.kv_blocks_cached, stats.kv_blocks_total);
  EXPECT_GT(stats.kv_blocks_cached, 0);
  engine->reset_prefix_cache();
  for (int i = 0; i < 1000 && engine->stats().kv_blocks_cached > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stats = engine->stats();
  EXPECT_EQ(stats.kv_blocks_free, stats.kv_blocks_total);
  EXPECT_EQ(stats.cache_entries, 0);
}

TEST_F(Features, WithoutAPrefixCacheNothingIsKept) {
  EngineConfig config;
  config.prefix_cache = false;
  const auto engine = start(512, 8, {2}, config);
  Collector one, two;
  run(*engine, request(100, 20), one);
  run(*engine, request(100, 20), two);
  EXPECT_EQ(two.last.cache.reason, "disabled");
  EXPECT_EQ(two.last.timings.cached_tokens, 0);
  EXPECT_EQ(two.ids, one.ids);
  EXPECT_EQ(engine->stats().kv_blocks_free, engine->stats().kv_blocks_total);
}

TEST(ChunkPaces, RowsFollowTheMeasuredTime) {
  ChunkPace pace(150);
  EXPECT_EQ(pace.rows(), 64);
  for (int i = 0; i < 20; ++i) pace.measured(pace.rows(), 20 + 0.5 * static_cast<double>(pace.rows()));
  EXPECT_NEAR(static_cast<double>(pace.rows()), 260, 3);  // 20 + 0.5 * 260 = 150
  pace.measured(pace.rows(), 3000);                       // a hiccup
  EXPECT_LE(pace.rows(), 20);
  for (int i = 0; i < 20; ++i) pace.measured(pace.rows(), 20 + 0.5 * static_cast<double>(pace.rows()));
  EXPECT_GT(pace.rows(), 250);
  pace.measured(16, 5000);
  EXPECT_EQ(pace.rows(), 16);
  EXPECT_EQ(ChunkPace(0).rows(), 0);
}

// Clients of every kind at once: those that are left alone get what they get alone, nothing leaks, nobody waits
// for ever.
TEST_F(Features, SixteenThreadsWithCancelsAndPauses) {
  EngineConfig config;
  config.max_sequences = 6;
  const auto engine = start(256, 3, {2}, config);
  std::vector<std::pair<GenerateRequest, std::vector<int32_t>>> jobs;
  for (uint64_t i = 0; i < 8; ++i) {
    GenerateRequest one = request(20 + 20 * i, 10 + static_cast<int64_t>(i) * 4, i / 2);  // pairs share a beginning
    one.priority = static_cast<int>(i % 3);
    one.cache.enabled = i % 4 != 3;
    one.cache.scope = i % 2 ? "a" : "b";
    one.progress = i % 2;
    Collector out;
    run(*engine, one, out);
    jobs.emplace_back(one, out.ids);
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  std::atomic<int> complete{0}, cancelled{0};
  const auto client = [&](uint64_t seed) {
    std::mt19937_64 dice(seed);
    while (std::chrono::steady_clock::now() < until) {
      const auto& [asked, alone] = jobs[dice() % jobs.size()];
      Collector out;
      const auto id = engine->submit(asked, out.sink());
      ASSERT_TRUE(id.ok()) << id.error().message;
      const uint64_t what = dice() % 4;
      if (what == 0) {
        out.wait_for_tokens(dice() % 6);
        engine->pause(*id);
        std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 20));
        engine->stats();
        engine->resume(*id);
      } else if (what == 1) {
        std::this_thread::sleep_for(std::chrono::microseconds(dice() % 20000));
        engine->cancel(*id);
      } else if (what == 2 && dice() % 20 == 0) {
        engine->reset_prefix_cache();
      }
      ASSERT_TRUE(out.wait());
      ASSERT_NE(out.last.reason, FinishReason::kError) << out.last.error->message;
      ASSERT_TRUE(std::equal(out.ids.begin(), out.ids.end(), alone.begin()));
      const bool cut = out.last.reason == FinishReason::kCancelled;
      if (!cut) {
        ASSERT_EQ(out.ids, alone);
      }
      ++(cut ? cancelled : complete);
    }
  };
  std::vector<std::thread> clients;
  for (uint64_t i = 0; i < 16; ++i) clients.emplace_back(client, i);
  for (std::thread& one : clients) one.join();
  EXPECT_GT(complete, 0);
  EXPECT_GT(cancelled, 0);
  EXPECT_GT(engine->stats().cache_hits, 0);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.kv_blocks_free + stats.kv_blocks_cached, stats.kv_blocks_total);
}

}  // namespace
}  // namespace vedette::engine
