#include "engine/request.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/test_models.h"

namespace vedette::engine {
namespace {

class Requests : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Sequence>> make(GenerateRequest request) {
    return make_sequence(std::move(request), [](const Event&) {}, {320, 64, eos_, &tokenizer_});
  }
  GenerateRequest good() {
    GenerateRequest request;
    request.prompt = {1, 5, 6};
    return request;
  }
  void expect_refused(GenerateRequest request, const std::string& field, const std::string& message) {
    const auto made = make(std::move(request));
    ASSERT_FALSE(made.ok()) << message;
    EXPECT_EQ(made.error().kind, ErrorKind::kInvalidRequest);
    EXPECT_EQ(made.error().field, field);
    EXPECT_EQ(made.error().message, message);
  }

  const std::vector<int32_t> eos_ = {2, 7};
  const text::Tokenizer tokenizer_ = test::test_tokenizer(320);
};

TEST_F(Requests, WhatCanNeverRunIsRefused) {
  GenerateRequest request;
  expect_refused(request, "prompt", "prompt is empty: at least one token is needed");
  request.prompt.assign(64, 1);
  expect_refused(request, "prompt", "prompt is too long: 64 tokens > 64 maximum");
  request.prompt.assign(1000, 1);
  expect_refused(request, "prompt", "prompt is too long: 1000 tokens > 64 maximum");
  request.prompt = {1, 320};
  expect_refused(request, "prompt", "prompt[1] is token id 320, must be from 0 to 319");
  request = good();
  request.stop_ids = {-1};
  expect_refused(request, "stop_ids", "stop_ids[0] is token id -1, must be from 0 to 319");
  request = good();
  request.max_tokens = -2;
  expect_refused(request, "max_tokens", "max_tokens is -2, must be at least 0, or -1 for no limit");
  request = good();
  request.stop = {"a", ""};
  expect_refused(request, "stop", "stop[1] is empty, must hold at least one character");
  request.stop = {"\xff"};
  expect_refused(request, "stop", "stop[0] is not valid UTF-8");
  request = good();
  request.sampling.temperature = -1;
  expect_refused(request, "temperature", "temperature is -1, must be a number from 0 to 100");
  request = good();
  request.sampling.logit_bias = {{320, 1.0f}};
  expect_refused(request, "logit_bias", "logit_bias names token id 320, must be from 0 to 319");
}

TEST_F(Requests, MaxTokensIsClampedToTheContextAndReported) {
  GenerateRequest request = good();
  EXPECT_EQ((*make(request))->max_tokens, 61);
  EXPECT_FALSE((*make(request))->max_tokens_clamped);
  request.max_tokens = 61;
  EXPECT_FALSE((*make(request))->max_tokens_clamped);
  request.max_tokens = INT64_MAX;
  EXPECT_EQ((*make(request))->max_tokens, 61);
  EXPECT_TRUE((*make(request))->max_tokens_clamped);
}

TEST_F(Requests, EndTokensAreTheModelsAndTheRequests) {
  GenerateRequest request = good();
  request.stop_ids = {5};
  EXPECT_EQ((*make(request))->end_ids, (std::vector<int32_t>{2, 5, 7}));
  request.ignore_eos = true;
  EXPECT_EQ((*make(request))->end_ids, (std::vector<int32_t>{5}));
}

TEST_F(Requests, AnAbsentSeedIsDrawn) {
  EXPECT_NE((*make(good()))->sampler.seed(), (*make(good()))->sampler.seed());
  GenerateRequest request = good();
  request.sampling.seed = 5;
  EXPECT_EQ((*make(request))->sampler.seed(), 5u);
}

}  // namespace
}  // namespace vedette::engine
