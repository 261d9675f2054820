// Prefixes through the scheduler: cached and cold runs give equal bits, and the second turn re-uses the first.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "engine/evaluate.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/test_models.h"

namespace vedette::engine {
namespace {

using Ids = std::vector<int32_t>;

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// One request and what became of it.
struct Asked {
  GenerateRequest request;
  Ids generated;
  Event last;
  int finished = 0;
  std::map<int64_t, std::vector<float>> logits;  // by the position they were drawn for
  Ids text() const { return request.prompt + generated; }
};

class Conversations {
 public:
  Conversations(models::Decoder& decoder, const SchedulerConfig& config, RunnerOptions options = {})
      : decoder_(decoder), runner_(decoder, config, std::move(options)) {
    runner_.observe([this](const Sequence& sequence, std::span<const float> logits) {
      asked_[sequence.id]->logits[std::ssize(sequence.ids)].assign(logits.begin(), logits.end());
    });
  }

  void add(Asked& asked) {
    auto sequence = make_sequence(asked.request,
                                  [&asked](const Event& event) {
                                    asked.generated.insert(asked.generated.end(), event.ids.begin(), event.ids.end());
                                    if (event.kind != Event::Kind::kFinished) return;
                                    asked.last = event;
                                    ++asked.finished;
                                  },
                                  {decoder_.spec().vocab_size, 2048, {}, nullptr});
    ASSERT_TRUE(sequence.ok()) << sequence.error().message;
    (*sequence)->id = asked_.size();
    asked_.push_back(&asked);
    runner_.add(std::move(*sequence));
  }
  void run() {
    for (int step = 0; !runner_.idle(); ++step) {
      ASSERT_LT(step, 20000) << "no progress";
      runner_.step();
    }
  }
  Asked& serve(Asked& asked) {
    add(asked);
    run();
    EXPECT_EQ(asked.last.reason, FinishReason::kLength);
    return asked;
  }
  Runner& runner() { return runner_; }
  EngineStats stats() { return runner_.board().read(); }

  void expect_nothing_leaked() {
    for (size_t group = 0; group < runner_.cache().n_groups(); ++group)
      EXPECT_EQ(runner_.cache().pool(group).available() + runner_.cache().pool(group).kept_alone(),
                runner_.cache().pool(group).total());
    runner_.reset_prefix_cache();
    for (size_t group = 0; group < runner_.cache().n_groups(); ++group)
      EXPECT_EQ(runner_.cache().pool(group).available(), runner_.cache().pool(group).total());
  }

 private:
  models::Decoder& decoder_;
  Runner runner_;
  std::vector<Asked*> asked_;  // by id
};

Asked ask(Ids prompt, int64_t max_tokens, int64_t history = -1) {
  Asked asked;
  asked.request.prompt = std::move(prompt);
  asked.request.max_tokens = max_tokens;
  asked.request.cache.history_tokens = history;
  asked.request.sampling.temperature = 1;
  asked.request.sampling.seed = 5;
  return asked;
}

// `cold` has never seen any of it: one pass over the final text gives the bits from which each token was drawn.
void expect_cold_bits(models::Decoder& cold, const Asked& asked) {
  const Ids text = asked.text();
  std::vector<std::vector<float>> rows;
  const Status status = evaluate(cold, text, 1024, [&](int64_t, std::span<const float> logits) {
    rows.emplace_back(logits.begin(), logits.end());
    return ok_status();
  });
  ASSERT_TRUE(status.ok());
  ASSERT_EQ(asked.logits.size(), asked.generated.size());
  for (const auto& [position, logits] : asked.logits)
    ASSERT_EQ(std::memcmp(rows[static_cast<size_t>(position) - 1].data(), logits.data(), logits.size() * sizeof(float)),
              0)
        << "position " << position << " of " << text.size() << ", cached " << asked.last.cache.cached_tokens;
}

// Full attention alone, or every second layer sliding.
test::TestModel model_of(bool sliding) {
  test::TestModel model = test::random_model({ops::Scheme::kQ8_0, 0, 0});
  if (sliding) return model;
  for (models::LayerSpec& layer : model.spec.layers)
    for (models::Part& part : layer.parts)
      if (auto* attention = std::get_if<models::AttentionSpec>(&part)) attention->window = 0;
  return model;
}

const SchedulerConfig kConfig{.max_rows = 136, .max_sequences = 8, .prefill_chunk = 128, .grant_interval = 2};

struct Case {
  bool sliding;
  ops::Compute compute;
  ops::DType kv_type;
};

class Trees : public ::testing::TestWithParam<Case> {};

// Batches of requests that go on from random points of earlier texts, over a roomy pool and over one that is always
// short.
TEST_P(Trees, CachedAndColdRunsGiveEqualBits) {
  const auto [sliding, compute, kv_type] = GetParam();
  const test::TestModel model = model_of(sliding);
  std::mt19937_64 random(sliding ? 3 : 4);
  int64_t cached = 0, preemptions = 0, evictions = 0;
  for (const bool roomy : {true, false}) {
    const test::DecoderOptions options{.compute = compute,
                                       .isa = {},
                                       .threads = 2,
                                       .kv_type = kv_type,
                                       .context = roomy ? 1024 : 352,
                                       .sequences = roomy ? 4 : 1,
                                       .chunk = 128};
    const auto decoder = test::load(model, options);
    const auto cold = test::load(model, {.compute = compute, .isa = {}, .threads = 2, .kv_type = kv_type});
    RunnerOptions runner_options;
    runner_options.prefix.snapshot_interval = 96;
    SchedulerConfig config = kConfig;
    config.prefill_chunk = 1 + static_cast<int64_t>(random() % 128);
    Conversations talk(*decoder, config, runner_options);
    std::vector<Ids> texts;
    for (int round = 0; round < 6; ++round) {
      std::vector<Asked> batch;
      for (int i = 0; i < 5; ++i) {
        Ids prompt;
        if (!texts.empty() && random() % 5 != 0) {
          prompt = texts[random() % texts.size()];
          if (random() % 2) prompt.resize(random() % (prompt.size() + 1));
        }
        prompt = prompt + test::random_ids(1 + random() % 60, model.spec.vocab_size, random());
        prompt.resize(std::min<size_t>(prompt.size(), roomy ? 250 : 150));
        batch.push_back(ask(prompt, 1 + static_cast<int64_t>(random() % (roomy ? 60 : 180)),
                            static_cast<int64_t>(random() % (prompt.size() + 1))));
        batch.back().request.priority = static_cast<int>(random() % 2);
      }
      for (Asked& asked : batch) talk.add(asked);
      talk.run();
      for (const Asked& asked : batch) {
        ASSERT_EQ(asked.last.reason, FinishReason::kLength);
        expect_cold_bits(*cold, asked);
        if (HasFatalFailure()) return;
        cached += asked.last.cache.cached_tokens;
        texts.push_back(asked.text());
      }
    }
    preemptions += talk.stats().preemptions;
    evictions += talk.stats().cache_evictions;
    talk.expect_nothing_leaked();
  }
  EXPECT_GT(cached, 1000);
  EXPECT_GT(preemptions, 0);
  EXPECT_GT(evictions, 0);
}

INSTANTIATE_TEST_SUITE_P(Prefixes, Trees,
                         ::testing::Values(Case{false, ops::Compute::kF32, ops::DType::kF32},
                                           Case{true, ops::Compute::kF32, ops::DType::kF32},
                                           Case{false, ops::Compute::kI8, ops::DType::kF16},
                                           Case{true, ops::Compute::kI8, ops::DType::kF16}));

class Turns : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<models::Decoder> load(int64_t context, int64_t sequences) {
    return test::load(model_, {.isa = {}, .threads = 2, .context = context, .sequences = sequences, .chunk = 128});
  }
  Ids fresh(size_t n) { return test::random_ids(n, model_.spec.vocab_size, ++seed_); }
  const test::TestModel model_ = model_of(GetParam());
  uint64_t seed_ = 100;
};

TEST_P(Turns, ALaterTurnComputesTheNewTokensAlone) {
  const auto decoder = load(1024, 2);
  Conversations talk(*decoder, kConfig);
  Ids text = fresh(300);
  for (int turn = 0; turn < 8; ++turn) {
    Asked asked = ask(text, 17 + turn, std::ssize(text) - 4);
    talk.serve(asked);
    if (turn > 0) {
      // What the last turn left: all but its last token, in whole blocks.
      EXPECT_GE(asked.last.cache.cached_tokens, std::ssize(text) - 23 - 32) << turn;
      EXPECT_EQ(asked.last.cache.matched_tokens, std::ssize(text) - 24) << turn;
      EXPECT_EQ(asked.last.cache.reason, "");
      EXPECT_EQ(asked.last.timings.cached_tokens, asked.last.cache.cached_tokens);
    } else {
      EXPECT_EQ(asked.last.cache.reason, "cold");
    }
    text = asked.text() + fresh(23);
  }
  talk.expect_nothing_leaked();
}

// The next prompt writes the reply in another way: everything up to the mark that opens it is there.
TEST_P(Turns, TheHistoryOutlivesAReplyThatIsWrittenOtherwise) {
  const auto decoder = load(1024, 2);
  Conversations talk(*decoder, kConfig);
  const Ids history = fresh(293);
  Asked first = ask(history + fresh(4), 40, 293);
  talk.serve(first);
  Asked second = ask(history + fresh(60), 5, 293);
  talk.serve(second);
  EXPECT_EQ(second.last.cache.cached_tokens, 288);
  EXPECT_EQ(second.last.cache.matched_tokens, 293);
  EXPECT_EQ(second.last.cache.reason, "differs");
  EXPECT_EQ(second.last.cache.expected[0], first.request.prompt[293]);
}

TEST_P(Turns, ConversationsThatFitKeepOutOfEachOthersWay) {
  const auto decoder = load(512, 2);
  Conversations talk(*decoder, kConfig);
  Ids text[2] = {fresh(200), fresh(230)};
  for (int turn = 0; turn < 10; ++turn) {
    Ids& mine = text[turn % 2];
    Asked asked = ask(mine, 12, std::ssize(mine) - 4);
    talk.serve(asked);
    if (turn > 1) {
      EXPECT_GE(asked.last.cache.cached_tokens, std::ssize(mine) - 10 - 32) << turn;
    }
    mine = asked.text() + fresh(10);
  }
}

// Side requests push out each other, not the conversation that goes on beside them.
TEST_P(Turns, SideRequestsDoNotEvictALiveConversation) {
  const auto decoder = load(512, 2);
  Conversations talk(*decoder, kConfig);
  Ids text = fresh(400);
  for (int turn = 0; turn < 5; ++turn) {
    Asked asked = ask(text, 12, std::ssize(text) - 4);
    talk.serve(asked);
    if (turn > 0) {
      EXPECT_GE(asked.last.cache.cached_tokens, std::ssize(text) - 6 - 32) << turn;
    }
    text = asked.text() + fresh(6);
    for (int side = 0; side < 3; ++side) {
      Asked one = ask(fresh(100), 5);
      talk.serve(one);
    }
  }
  EXPECT_GT(talk.stats().cache_evictions, 0);
}

TEST_P(Turns, RequestsThatArriveTogetherShareTheirBeginning) {
  const auto decoder = load(512, 6);
  Conversations talk(*decoder, kConfig);
  const Ids system = fresh(230);
  std::vector<Asked> batch;
  for (int i = 0; i < 5; ++i) batch.push_back(ask(system + fresh(60), 10));
  for (Asked& asked : batch) talk.add(asked);
  talk.run();
  // Sliding layers: the second one learns where they part.
  for (size_t i = GetParam() ? 2 : 1; i < batch.size(); ++i) {
    EXPECT_EQ(batch[i].last.cache.cached_tokens, 224) << i;
    EXPECT_EQ(batch[i].last.cache.reason, "differs");
    EXPECT_EQ(batch[i].last.cache.matched_tokens, 230);
  }
  talk.expect_nothing_leaked();
}

TEST_P(Turns, ScopesAndDisabledRequestsShareNothing) {
  const auto decoder = load(512, 6);
  Conversations talk(*decoder, kConfig);
  const Ids prompt = fresh(200);
  Asked first = ask(prompt, 5), other = ask(prompt, 5), off = ask(prompt, 5), again = ask(prompt, 5);
  first.request.cache.scope = again.request.cache.scope = "one";
  other.request.cache.scope = "two";
  off.request.cache.enabled = false;
  off.request.cache.scope = "one";
  EXPECT_EQ(talk.serve(off).last.cache.reason, "disabled");
  EXPECT_EQ(talk.serve(first).last.cache.reason, "cold");  // it left nothing
  EXPECT_EQ(talk.serve(other).last.cache.reason, "cold");
  EXPECT_EQ(talk.serve(off).last.cache.cached_tokens, 0);
  EXPECT_EQ(talk.serve(again).last.cache.cached_tokens, 192);
  EXPECT_EQ(again.generated, first.generated);
}

// A prompt that was cut off goes on where it was.
TEST_P(Turns, ACancelledPrefillIsNotLost) {
  const auto decoder = load(1024, 2);
  Conversations talk(*decoder, kConfig);
  const Ids prompt = fresh(600);
  Asked first = ask(prompt, 5), second = ask(prompt, 5);
  talk.add(first);
  for (int step = 0; step < 4; ++step) talk.runner().step();
  talk.runner().cancel(0);
  EXPECT_EQ(first.last.reason, FinishReason::kCancelled);
  EXPECT_GE(talk.serve(second).last.cache.cached_tokens, 384);
  talk.expect_nothing_leaked();
}

TEST_P(Turns, BoundedByTokens) {
  const auto decoder = load(1024, 2);
  RunnerOptions options;
  options.prefix.max_tokens = 320;
  Conversations talk(*decoder, kConfig, options);
  Asked first = ask(fresh(300), 5), second = ask(fresh(300), 5);
  talk.serve(first);
  talk.serve(second);
  EXPECT_LE(talk.stats().cache_entries * ops::kBlockTokens, 320);
  Asked again = ask(second.text() + fresh(5), 5);
  EXPECT_EQ(talk.serve(again).last.cache.cached_tokens, 288);
}

INSTANTIATE_TEST_SUITE_P(Prefixes, Turns, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Sliding" : "Full"; });

}  // namespace
}  // namespace vedette::engine
