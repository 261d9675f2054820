#include "engine/load.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>

#include "engine/evaluate.h"
#include "engine/test_models.h"

namespace vedette::engine {
namespace {

TEST(EndTokens, AreThoseOfAllSourcesOnce) {
  weights::Checkpoint checkpoint;
  EXPECT_EQ(*end_tokens(checkpoint, std::nullopt), std::vector<int32_t>{});
  checkpoint.config.set("eos_token_id", 5);
  EXPECT_EQ(*end_tokens(checkpoint, std::nullopt), std::vector<int32_t>{5});
  checkpoint.generation_config.set("eos_token_id", Json(Json::Array{Json(9), Json(5), Json(7), Json(-1)}));
  EXPECT_EQ(*end_tokens(checkpoint, 8), (std::vector<int32_t>{5, 7, 8, 9}));
  checkpoint.config.set("eos_token_id", Json());
  weights::GgufVocabulary vocabulary;
  vocabulary.eos = 1;
  vocabulary.eot = 106;
  checkpoint.tokenizer = vocabulary;
  EXPECT_EQ(*end_tokens(checkpoint, 1), (std::vector<int32_t>{1, 5, 7, 9, 106}));
}

TEST(EndTokens, ThatAreNoIdsAreErrors) {
  for (const char* bad : {R"("x")", "2.5", "-2", "99999999999", "true", "[2, null]", "{}"}) {
    weights::Checkpoint checkpoint;
    checkpoint.path = "m";
    checkpoint.config.set("eos_token_id", *parse_json(bad, "test"));
    auto ids = end_tokens(checkpoint, std::nullopt);
    ASSERT_FALSE(ids.ok()) << bad;
    EXPECT_TRUE(ids.error().message.starts_with("m/config.json: eos_token_id: expected")) << ids.error().message;
  }
  weights::Checkpoint checkpoint;
  checkpoint.path = "m";
  checkpoint.generation_config = Json::array();
  EXPECT_NE(
      end_tokens(checkpoint, std::nullopt).error().message.find("m/generation_config.json: expected a JSON object"),
      std::string::npos);
}

std::string fixture_path(const std::string& name) {
  const char* folder = std::getenv("VEDETTE_FIXTURES");
  return std::string(folder ? folder : VEDETTE_DEFAULT_FIXTURES) + "/" + name;
}

class Load : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = weights::open_checkpoint(fixture_path("llama"));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    checkpoint_ = std::move(*opened);
  }
  std::string refusal(const LoadOptions& options) {
    const auto loaded = load_decoder(checkpoint_, options);
    return loaded.ok() ? "" : loaded.error().message;
  }
  weights::Checkpoint checkpoint_;
};

TEST_F(Load, ChoosesComputeAndKvTypeAndReports) {
  auto loaded = load_decoder(checkpoint_, {});
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const LoadReport& report = loaded->report;
  EXPECT_EQ(report.family, "llama");
  EXPECT_EQ(report.backend.compute, ops::Compute::kI16);  // small
  EXPECT_EQ(report.kv_type, ops::DType::kF16);
  EXPECT_EQ(report.context_length, 512);
  EXPECT_EQ(report.kv_blocks, std::vector<int64_t>{32});  // one context to run in, one for the prefix cache
  EXPECT_EQ(report.parameters, parameter_count(checkpoint_));
  EXPECT_GT(report.parameters, 100000);
  EXPECT_GT(report.estimate.kv_bytes, 0);
  EXPECT_GT(report.estimate.activation_bytes, 0);
  EXPECT_TRUE(report.estimate.fits());
  EXPECT_EQ(report.eos, std::vector<int32_t>{2});
  EXPECT_EQ(load_decoder(checkpoint_, {.compute = ComputeChoice::kF32})->report.kv_type, ops::DType::kF32);
  EXPECT_EQ(load_decoder(checkpoint_, {.kv_type = ops::DType::kBF16})->report.kv_type, ops::DType::kBF16);
}

TEST_F(Load, RefusesWhatCannotBe) {
  EXPECT_EQ(refusal({.context_length = 513}),
            "a context of 513 tokens was asked for, the model was trained for 512; lower --ctx-size");
  EXPECT_EQ(refusal({.max_sequences = 0}), "max_sequences is 0, must be at least 1");
  EXPECT_EQ(refusal({.prefill_chunk = 0}), "prefill_chunk is 0, must be at least 1");
  EXPECT_NE(refusal({.isa = "sse9"}).find("sse9"), std::string::npos);
  EXPECT_NE(refusal({.context_length = 512, .kv_budget_bytes = 1000}).find("lower --ctx-size"), std::string::npos);
}

TEST_F(Load, WithoutATokenizerThereIsNoEngine) {
  const auto model = load_model(checkpoint_, {});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().kind, ErrorKind::kNotFound);
}

TEST_F(Load, WithATokenizerARequestRuns) {
  weights::GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  for (int i = 0; i < 320; ++i) {
    vocabulary.tokens.push_back(std::to_string(i) + " ");
    vocabulary.scores.push_back(static_cast<float>(-i));
    vocabulary.types.push_back(i == 2 ? 3 : 1);
  }
  vocabulary.eos = 2;
  checkpoint_.tokenizer = vocabulary;
  auto model = load_model(checkpoint_, {.max_sequences = 2});
  ASSERT_TRUE(model.ok()) << model.error().message;
  GenerateRequest request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 4;
  request.ignore_eos = true;
  std::vector<int32_t> ids;
  std::promise<void> finished;
  const auto id = model->engine->submit(request, [&](const Event& event) {
    ids.insert(ids.end(), event.ids.begin(), event.ids.end());
    if (event.kind == Event::Kind::kFinished) finished.set_value();
  });
  ASSERT_TRUE(id.ok()) << id.error().message;
  ASSERT_EQ(finished.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(ids.size(), 4u);
}

// Ids that plain text can become need a row of the embedding; tokens added beside the model do not.
TEST_F(Load, TokensBeyondTheEmbedding) {
  const auto outcome = [&](int count, int32_t type, std::optional<int32_t> bos) {
    weights::GgufVocabulary vocabulary;
    vocabulary.model = "llama";
    for (int i = 0; i < count; ++i) {
      vocabulary.tokens.push_back("t" + std::to_string(i));
      vocabulary.scores.push_back(static_cast<float>(-i));
      vocabulary.types.push_back(i == 2 ? 3 : i < 320 ? 1 : type);
    }
    vocabulary.eos = 2;
    vocabulary.bos = bos;
    checkpoint_.tokenizer = vocabulary;
    const auto model = load_model(checkpoint_, {});
    return model.ok() ? "" : model.error().message;
  };
  EXPECT_EQ(outcome(320, 1, std::nullopt), "");
  EXPECT_EQ(outcome(330, 3, std::nullopt), "");  // control
  EXPECT_EQ(outcome(330, 4, std::nullopt), "");  // user-defined
  EXPECT_EQ(outcome(330, 5, std::nullopt), "");  // unused
  for (const int32_t type : {1, 2, 6}) {
    const std::string message = outcome(322, type, std::nullopt);
    EXPECT_NE(message.find("last ordinary token has id 321, the model has ids from 0 to 319"), std::string::npos)
        << message;
  }
  const std::string message = outcome(330, 3, 325);
  EXPECT_NE(message.find("first token of a text has id 325"), std::string::npos) << message;
}

TEST(Evaluate, CallsBackForEveryRowFromTheFirstAskedFor) {
  const test::TestModel model = test::random_model({ops::Scheme::kQ8_0, 0, 0});
  const auto decoder = test::load(model, {.isa = {}, .max_rows = 16, .max_logit_rows = 5, .context = 64, .chunk = 64});
  const auto ids = test::random_ids(40, model.spec.vocab_size, 1);
  std::vector<std::vector<float>> all, some;
  ASSERT_TRUE(evaluate(*decoder, ids, 100, [&](int64_t row, std::span<const float> logits) -> Status {
                EXPECT_EQ(row, static_cast<int64_t>(all.size()));
                all.emplace_back(logits.begin(), logits.end());
                return ok_status();
              }).ok());
  ASSERT_EQ(all.size(), 40u);
  ASSERT_TRUE(evaluate(
                  *decoder, ids, 7,
                  [&](int64_t row, std::span<const float> logits) -> Status {
                    EXPECT_EQ(row, 30 + static_cast<int64_t>(some.size()));
                    some.emplace_back(logits.begin(), logits.end());
                    return ok_status();
                  },
                  30)
                  .ok());
  EXPECT_EQ(some, (std::vector<std::vector<float>>(all.begin() + 30, all.end())));
}

TEST(Evaluate, RefusesWhatCannotRunAndStopsWhenTold) {
  const test::TestModel model = test::random_model({ops::Scheme::kQ8_0, 0, 0});
  const auto decoder = test::load(model, {.isa = {}, .context = 64, .chunk = 64});
  const LogitsCallback ignore = [](int64_t, std::span<const float>) { return ok_status(); };
  EXPECT_EQ(evaluate(*decoder, {}, 1, ignore).error().message, "no token ids to evaluate");
  EXPECT_EQ(evaluate(*decoder, std::vector<int32_t>{1, 333}, 1, ignore).error().message,
            "ids[1] is token id 333, must be from 0 to 332");
  EXPECT_EQ(evaluate(*decoder, std::vector<int32_t>{1}, 0, ignore).error().message, "chunk is 0, must be at least 1");
  EXPECT_EQ(evaluate(*decoder, std::vector<int32_t>(65, 1), 9, ignore).error().message,
            "65 tokens do not fit the K/V pool; lower the length or raise --ctx-size");
  int calls = 0;
  const Status stopped = evaluate(*decoder, std::vector<int32_t>(20, 1), 9, [&](int64_t, std::span<const float>) {
    return ++calls == 3 ? Status(Error{ErrorKind::kCancelled, "enough", ""}) : ok_status();
  });
  EXPECT_EQ(stopped.error().message, "enough");
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace vedette::engine
