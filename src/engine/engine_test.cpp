#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "engine/engine_fixture.h"

namespace vedette::engine {
namespace {

TEST_F(Engines, LengthEndsARequestAndTimesIt) {
  const auto engine = start();
  Collector out;
  run(*engine, request(100, 20), out);
  EXPECT_EQ(out.ids.size(), 20u);
  EXPECT_EQ(out.last.reason, FinishReason::kLength);
  EXPECT_EQ(out.last.seed, 1u);
  EXPECT_EQ(out.last.timings.prompt_tokens, 100);
  EXPECT_EQ(out.last.timings.generated_tokens, 20);
  EXPECT_GT(out.last.timings.prefill_ms, 0);
  EXPECT_GT(out.last.timings.decode_ms, 0);
  EXPECT_FALSE(out.last.max_tokens_clamped);
  EXPECT_EQ(out.text, engine->tokenizer().decode(out.ids));
  EXPECT_EQ(out.pieces.size(), 21u);  // one event a token, and the end
}

TEST_F(Engines, AFullContextEndsWithLength) {
  const auto engine = start(128);
  EXPECT_EQ(engine->context_length(), 128);
  Collector out;
  run(*engine, request(120, 1000), out);
  EXPECT_EQ(out.ids.size(), 8u);
  EXPECT_EQ(out.last.reason, FinishReason::kLength);
  EXPECT_TRUE(out.last.max_tokens_clamped);
  const auto refused = engine->submit(request(128, 1), [](const Event&) {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "prompt is too long: 128 tokens > 128 maximum");
}

TEST_F(Engines, EndTokensEndARequestWithoutTheirText) {
  Collector free;
  run(*start(), request(30, 30), free);
  const int32_t end = free.ids[10];
  const auto first = std::find(free.ids.begin(), free.ids.end(), end);
  const std::vector<int32_t> expected(free.ids.begin(), first + 1);
  for (const bool of_model : {true, false}) {
    const auto engine = start(512, 8, of_model ? std::vector<int32_t>{end} : std::vector<int32_t>{});
    GenerateRequest again = request(30, 30);
    again.ignore_eos = false;
    if (!of_model) again.stop_ids = {end};
    Collector out;
    run(*engine, again, out);
    EXPECT_EQ(out.ids, expected);
    EXPECT_EQ(out.last.reason, FinishReason::kStop);
    EXPECT_EQ(out.last.stop_text, "");
    EXPECT_EQ(out.text, engine->tokenizer().decode(std::vector<int32_t>(expected.begin(), expected.end() - 1)));
  }
}

// Every stop taken from the text itself: what streams is the text before its first occurrence.
TEST_F(Engines, StopStrings) {
  const auto engine = start();
  Collector free;
  run(*engine, request(30, 25), free);
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    const size_t at = random() % free.text.size();
    const std::string stop = free.text.substr(at, 1 + random() % 9);
    GenerateRequest again = request(30, 25);
    again.stop = {"never in it", stop};
    Collector out;
    run(*engine, again, out);
    EXPECT_EQ(out.text, free.text.substr(0, free.text.find(stop))) << stop;
    EXPECT_EQ(out.last.reason, FinishReason::kStop);
    EXPECT_EQ(out.last.stop_text, stop);
    EXPECT_TRUE(std::equal(out.ids.begin(), out.ids.end(), free.ids.begin()));
  }
  GenerateRequest again = request(30, 25);
  again.stop = {"no", "such", "stop", free.text + "!"};
  Collector out;
  run(*engine, again, out);
  EXPECT_EQ(out.text, free.text);
  EXPECT_EQ(out.last.reason, FinishReason::kLength);
}

// One request that wants the whole context and several others, in a K/V pool for little more than one.
TEST_F(Engines, AShortPoolFailsNobody) {
  Collector alone[4];
  const auto make = [&](uint64_t i) { return request(20 + 30 * i, i == 0 ? 100000 : 60, 10 + i); };
  for (uint64_t i = 0; i < 4; ++i) run(*start(256), make(i), alone[i]);
  const auto engine = start(256, 1);
  Collector out[4];
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(engine->submit(make(i), out[i].sink()).ok());
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(out[i].wait());
    EXPECT_EQ(out[i].last.reason, FinishReason::kLength);
    EXPECT_EQ(out[i].ids, alone[i].ids) << i;
    EXPECT_EQ(out[i].text, alone[i].text);
  }
}

TEST_F(Engines, CancelInTheQueueInPrefillAndInDecode) {
  EngineConfig config;
  config.max_sequences = 1;
  config.prefill_chunk = 1;  // a prefill of 400 steps
  const auto engine = start(512, 1, {}, config);
  Collector decoding, prefilling, queued;
  decoding.hold_at_tokens = 3;
  prefilling.hold_at_progress = 1;
  GenerateRequest long_prompt = request(400, 500);
  long_prompt.progress = true;
  const auto first = engine->submit(request(4, 500), decoding.sink());
  const auto second = engine->submit(long_prompt, prefilling.sink());
  const auto third = engine->submit(request(4, 5), queued.sink());
  ASSERT_TRUE(decoding.wait_until_held());
  engine->cancel(*third);
  engine->cancel(*first);
  decoding.release();
  ASSERT_TRUE(queued.wait());
  EXPECT_TRUE(queued.ids.empty());
  ASSERT_TRUE(decoding.wait());
  EXPECT_EQ(decoding.ids.size(), 3u);
  ASSERT_TRUE(prefilling.wait_until_held());
  engine->cancel(*second);
  prefilling.release();
  ASSERT_TRUE(prefilling.wait());
  EXPECT_TRUE(prefilling.ids.empty());
  for (const Collector* out : {&decoding, &prefilling, &queued}) EXPECT_EQ(out->last.reason, FinishReason::kCancelled);
  engine->cancel(*first);  // gone: no effect
  engine->cancel(12345);
  Collector after;
  run(*engine, request(10, 5), after);
  EXPECT_EQ(after.ids.size(), 5u);
}

TEST_F(Engines, ASinkMayCancelItsOwnRequest) {
  const auto engine = start();
  Collector out;
  std::atomic<RequestId> id{0};
  const auto submitted = engine->submit(request(10, 400), [&, sink = out.sink()](const Event& event) {
    sink(event);
    if (out.ids.size() < 3 || event.kind == Event::Kind::kFinished) return;
    id.wait(0);
    engine->cancel(id);
  });
  id = *submitted;
  id.notify_all();
  ASSERT_TRUE(out.wait());
  EXPECT_EQ(out.last.reason, FinishReason::kCancelled);
  EXPECT_EQ(out.ids.size(), 3u);
}

TEST_F(Engines, TheEndOfTheEngineCancelsEverything) {
  Collector out[3];
  {
    const auto engine = start();
    for (Collector& one : out) {
      const auto slow = [sink = one.sink()](const Event& event) {
        sink(event);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the end is asked for long before the last token
      };
      ASSERT_TRUE(engine->submit(request(50, 450), slow).ok());
    }
    ASSERT_TRUE(out[0].wait_for_tokens(1));
  }
  for (const Collector& one : out) {
    EXPECT_EQ(one.finished, 1);
    EXPECT_EQ(one.last.reason, FinishReason::kCancelled);
  }
}

// An error after a step ends that step's sequences; the engine goes on.
TEST_F(Engines, AFaultEndsTheSequencesConcernedOnly) {
  std::atomic<bool> broken{false};
  EngineConfig config;
  config.health = [&]() -> Status {
    if (!broken) return ok_status();
    return Error{ErrorKind::kCorruptFile, "weights were truncated", ""};
  };
  const auto engine = start(512, 8, {}, config);
  Collector before, during, after;
  run(*engine, request(10, 5), before);
  EXPECT_EQ(before.last.reason, FinishReason::kLength);
  broken = true;
  run(*engine, request(10, 5), during);
  EXPECT_EQ(during.last.reason, FinishReason::kError);
  ASSERT_TRUE(during.last.error);
  EXPECT_EQ(during.last.error->message, "weights were truncated");
  broken = false;
  run(*engine, request(10, 5), after);
  EXPECT_EQ(after.ids, before.ids);
}

// A token whose embedding is NaN: a prompt with it has no usable logits; to all others it is one that is never drawn.
TEST_F(Engines, ARowOfNanEndsItsSequenceOnly) {
  constexpr int32_t kPoison = 7;
  const test::TestModel sick = test::random_model({ops::Scheme::kF32, 0, 0});
  const auto table = sick.checkpoint->tensors.at(sick.spec.embedding).matrix.data;
  auto* values = reinterpret_cast<float*>(const_cast<std::byte*>(table.data()));
  std::fill_n(values + kPoison * sick.spec.hidden_size, sick.spec.hidden_size, std::nanf(""));
  test::DecoderOptions options{
      .isa = {}, .max_rows = 128, .max_logit_rows = 8, .context = 128, .sequences = 8, .chunk = 128};
  auto engine = Engine::start(test::load(sick, options), test::test_tokenizer(333), {},
                              {.context_length = 128, .max_sequences = 8, .prefill_chunk = 64});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  GenerateRequest healthy = request(20, 40);
  std::replace(healthy.prompt.begin(), healthy.prompt.end(), kPoison, 8);
  GenerateRequest poisoned = healthy;
  poisoned.prompt[10] = kPoison;
  Collector first, second, third;
  ASSERT_TRUE((*engine)->submit(healthy, first.sink()).ok());
  ASSERT_TRUE((*engine)->submit(poisoned, second.sink()).ok());
  ASSERT_TRUE((*engine)->submit(healthy, third.sink()).ok());
  for (Collector* out : {&first, &second, &third}) ASSERT_TRUE(out->wait());
  EXPECT_EQ(second.last.reason, FinishReason::kError);
  ASSERT_TRUE(second.last.error);
  EXPECT_EQ(second.last.error->kind, ErrorKind::kInternal);
  EXPECT_EQ(first.last.reason, FinishReason::kLength);
  EXPECT_EQ(first.ids.size(), 40u);
  EXPECT_EQ(std::count(first.ids.begin(), first.ids.end(), kPoison), 0);
  EXPECT_EQ(third.ids, first.ids);
}

TEST_F(Engines, ConfigurationsThatDoNotFitTheDecoderAreRefused) {
  const auto attempt = [&](EngineConfig config) {
    test::DecoderOptions options{.isa = {}, .max_rows = 64, .max_logit_rows = 4, .context = 128, .chunk = 64};
    auto engine = Engine::start(test::load(model_, options), test::test_tokenizer(333), {}, config);
    return engine.ok() ? std::string() : engine.error().message;
  };
  EXPECT_EQ(attempt({.context_length = 128, .max_sequences = 5, .prefill_chunk = 32}),
            "max_sequences is 5, must be from 1 to 4 (logit rows of a step)");
  EXPECT_EQ(attempt({.context_length = 128, .max_sequences = 4, .prefill_chunk = 62}),
            "prefill_chunk is 62, must be from 1 to 61 (rows of a step)");
  EXPECT_EQ(attempt({.context_length = 200, .max_sequences = 4, .prefill_chunk = 32}),
            "a context of 200 tokens does not fit the K/V pool, which holds 128 tokens; lower --ctx-size or raise the "
            "K/V budget");
  EXPECT_EQ(attempt({.context_length = 0, .max_sequences = 4, .prefill_chunk = 32}), "");
}

// Requests of every kind from several threads for some seconds, some cancelled at random: those that end by
// themselves have the ids of a run alone.
TEST_F(Engines, SoakWithRandomCancellations) {
  const auto engine = start(256, 3);
  struct Job {
    GenerateRequest request;
    std::vector<int32_t> alone;
  };
  std::mt19937_64 random(99);
  std::vector<Job> jobs;
  for (uint64_t i = 0; i < 8; ++i) {
    GenerateRequest one = request(1 + random() % 150, 1 + static_cast<int64_t>(random() % 60), i);
    one.sampling.temperature = static_cast<double>(random() % 3) * 0.7;
    one.sampling.top_p = random() % 2 ? 0.9 : 1.0;
    one.sampling.top_k = random() % 2 ? 50 : 0;
    one.sampling.frequency_penalty = random() % 2 ? 0.5 : 0.0;
    Collector out;
    run(*engine, one, out);
    jobs.push_back({one, out.ids});
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::atomic<int> complete{0}, cancelled{0};
  const auto client = [&](uint64_t seed) {
    std::mt19937_64 dice(seed);
    while (std::chrono::steady_clock::now() < until) {
      const Job& job = jobs[dice() % jobs.size()];
      Collector out;
      const auto id = engine->submit(job.request, out.sink());
      ASSERT_TRUE(id.ok());
      if (dice() % 3 == 0) {
        out.wait_for_tokens(dice() % 10);
        engine->cancel(*id);
      }
      ASSERT_TRUE(out.wait());
      ASSERT_NE(out.last.reason, FinishReason::kError);
      ASSERT_TRUE(std::equal(out.ids.begin(), out.ids.end(), job.alone.begin()));
      if (out.last.reason == FinishReason::kCancelled) {
        ++cancelled;
      } else {
        ASSERT_EQ(out.ids, job.alone);
        ++complete;
      }
    }
  };
  std::vector<std::thread> clients;
  for (uint64_t i = 0; i < 8; ++i) clients.emplace_back(client, i);
  for (std::thread& one : clients) one.join();
  EXPECT_GT(complete, 0);
  EXPECT_GT(cancelled, 0);
}

}  // namespace
}  // namespace vedette::engine
