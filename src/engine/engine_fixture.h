// An engine over a small random model, and what its requests deliver; for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "engine/engine.h"
#include "engine/test_models.h"

namespace vedette::engine {

// Collects one request's events; any thread may wait for its end.
struct Collector {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int32_t> ids;
  std::string text;
  std::vector<std::string> pieces;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;
  std::vector<int64_t> progress;
  Event last;
  int finished = 0;

  // Events of one request; by these two the engine stands still in the sink, with that many tokens or reports of
  // progress told, until release(): what a test then asks for comes before the next step, however the machine is
  // loaded.
  size_t hold_at_tokens = SIZE_MAX, hold_at_progress = SIZE_MAX;
  bool released = false;

  EventSink sink() {
    return [this](const Event& event) {
      std::unique_lock lock(mutex);
      EXPECT_EQ(finished, 0) << "an event after the last";
      EXPECT_TRUE(is_valid_utf8(event.text));
      ids.insert(ids.end(), event.ids.begin(), event.ids.end());
      text += event.text;
      auto& told = event.kind == Event::Kind::kPrompt ? prompt_logprobs : logprobs;
      told.insert(told.end(), event.logprobs.begin(), event.logprobs.end());
      if (event.kind == Event::Kind::kProgress)
        progress.push_back(event.prefilled);
      else if (event.kind != Event::Kind::kPrompt)
        pieces.push_back(event.text);
      if (event.kind == Event::Kind::kFinished) {
        last = event;
        ++finished;
      }
      changed.notify_all();
      if (event.kind == Event::Kind::kFinished) return;
      EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return released || !holds(); }));
    };
  }
  bool holds() const { return ids.size() >= hold_at_tokens || progress.size() >= hold_at_progress; }
  // True once the engine stands still in this sink.
  bool wait_until_held() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return holds() || finished > 0; }) && finished == 0;
  }
  void release() {
    const std::scoped_lock lock(mutex);
    released = true;
    changed.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return finished > 0; });
  }
  bool wait_for_tokens(size_t n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return ids.size() >= n || finished > 0; });
  }
};

class Engines : public ::testing::Test {
 protected:
  // context tokens, blocks for `sequences` of them.
  std::unique_ptr<Engine> start(int64_t context = 512, int64_t sequences = 8, std::vector<int32_t> eos = {2},
                                EngineConfig config = {}) {
    config.context_length = context;
    config.prefill_chunk = config.prefill_chunk == 512 ? 64 : config.prefill_chunk;
    test::DecoderOptions options{.isa = {},
                                 .threads = 2,
                                 .max_rows = 128,
                                 .max_logit_rows = 8,
                                 .context = context,
                                 .sequences = sequences,
                                 .chunk = 128};
    auto engine = Engine::start(test::load(model_, options), test::test_tokenizer(model_.spec.vocab_size),
                                std::move(eos), config);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(*engine);
  }
  GenerateRequest request(size_t prompt_tokens, int64_t max_tokens, uint64_t seed = 1) {
    GenerateRequest request;
    request.prompt = test::random_ids(prompt_tokens, model_.spec.vocab_size, seed);
    request.max_tokens = max_tokens;
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    request.ignore_eos = true;
    return request;
  }
  void run(Engine& engine, GenerateRequest request, Collector& collector) {
    const auto id = engine.submit(std::move(request), collector.sink());
    ASSERT_TRUE(id.ok()) << id.error().message;
    ASSERT_TRUE(collector.wait()) << "no end in time";
  }

  const test::TestModel model_ = test::random_model({ops::Scheme::kQ8_0, 0, 0});
};

}  // namespace vedette::engine
