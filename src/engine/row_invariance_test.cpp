// The numerical contract: the logits of a row depend on its sequence's rows at or before it alone. Whatever the
// chunking, the batch, the thread count and the instruction set, they are equal bit for bit.
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

using test::DecoderOptions;
using test::StoredAs;
using test::TestModel;

using Logits = std::vector<std::vector<float>>;  // [row, vocabulary]

Logits run_alone(models::Decoder& decoder, const std::vector<int32_t>& ids, int chunk) {
  Logits rows;
  const Status status = evaluate(decoder, ids, chunk, [&](int64_t, std::span<const float> logits) {
    rows.emplace_back(logits.begin(), logits.end());
    return ok_status();
  });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  return rows;
}

// Row-by-row comparison of bits; the first row that differs is named.
::testing::AssertionResult same_bits(const Logits& expected, const Logits& found) {
  if (expected.size() != found.size())
    return ::testing::AssertionFailure() << expected.size() << " rows expected, " << found.size() << " found";
  for (size_t row = 0; row < expected.size(); ++row)
    for (size_t i = 0; i < expected[row].size(); ++i)
      if (std::memcmp(&expected[row][i], &found[row][i], sizeof(float)) != 0)
        return ::testing::AssertionFailure()
               << "row " << row << " token " << i << ": " << expected[row][i] << " and " << found[row][i];
  return ::testing::AssertionSuccess();
}

// NaN everywhere would be equal to itself.
::testing::AssertionResult sane(const Logits& rows) {
  float low = INFINITY, high = -INFINITY;
  for (const auto& row : rows)
    for (const float logit : row) {
      if (!std::isfinite(logit)) return ::testing::AssertionFailure() << "a logit is " << logit;
      low = std::min(low, logit);
      high = std::max(high, logit);
    }
  if (high - low < 0.1f) return ::testing::AssertionFailure() << "logits span only " << high - low;
  return ::testing::AssertionSuccess();
}

// Variants of one decoder that must not change a bit. The portable kernels are slow: they run the first
// `portable_rows` rows, which by the same contract do not depend on the rest.
void expect_same_everywhere(const TestModel& model, DecoderOptions options, const std::vector<int32_t>& ids,
                            size_t portable_rows, std::mt19937_64& random) {
  options.isa = ops::cpu::available_isas().back();
  const Logits expected = run_alone(*test::load(model, options), ids, static_cast<int>(ids.size()));
  ASSERT_TRUE(sane(expected));
  const auto check = [&](ops::cpu::Isa isa, int threads, size_t rows, size_t most) {
    options.isa = isa;
    options.threads = threads;
    const int chunk = 1 + static_cast<int>(random() % most);
    const std::vector<int32_t> run(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(rows));
    const Logits first(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(rows));
    EXPECT_TRUE(same_bits(first, run_alone(*test::load(model, options), run, chunk)))
        << ops::cpu::to_string(isa) << " threads " << threads << " chunk " << chunk;
  };
  for (const ops::cpu::Isa isa : ops::cpu::available_isas()) {
    if (isa == ops::cpu::Isa::kPortable) {
      check(isa, 2, std::min(portable_rows, ids.size()), portable_rows);
      continue;
    }
    check(isa, 1, ids.size(), 5);
    check(isa, 2, ids.size(), ids.size());
  }
}

class EveryScheme : public ::testing::TestWithParam<std::tuple<StoredAs, ops::Compute>> {};

TEST_P(EveryScheme, ChunksThreadsAndInstructionSets) {
  const auto& [stored, compute] = GetParam();
  const TestModel model = test::random_model(stored);
  std::mt19937_64 random(17);
  // 3 pages, past the window.
  const auto ids = test::random_ids(70 + random() % 30, model.spec.vocab_size, random());
  expect_same_everywhere(model, {.compute = compute, .isa = {}, .context = 128, .chunk = 128}, ids, 40, random);
}

std::string scheme_name(const ::testing::TestParamInfo<std::tuple<StoredAs, ops::Compute>>& info) {
  std::string name = test::name_of(std::get<0>(info.param)) + "_" + ops::to_string(std::get<1>(info.param));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(RowInvariance, EveryScheme,
                         ::testing::Combine(::testing::ValuesIn(test::every_scheme()),
                                            ::testing::Values(ops::Compute::kI8, ops::Compute::kI16,
                                                              ops::Compute::kF32)),
                         scheme_name);

// More than 3 attention splits of 256 tokens; every K/V type.
TEST(RowInvariance, LongPrompts) {
  std::mt19937_64 random(23);
  const ops::DType types[] = {ops::DType::kF16, ops::DType::kF32, ops::DType::kBF16};
  const ops::Compute computes[] = {ops::Compute::kI8, ops::Compute::kF32, ops::Compute::kI16};
  const TestModel model = test::random_model({ops::Scheme::kQ4_1, 0, 0});
  const auto ids = test::random_ids(830, model.spec.vocab_size, 5);
  for (int i = 0; i < 3; ++i) {
    DecoderOptions options{.compute = computes[i], .isa = {}, .kv_type = types[i]};
    const Logits expected = run_alone(*test::load(model, options), ids, 1000);
    ASSERT_TRUE(sane(expected));
    options.threads = 2;
    options.chunk = 1 + static_cast<int64_t>(random() % 300);
    const auto decoder = test::load(model, options);
    EXPECT_TRUE(same_bits(expected, run_alone(*decoder, ids, static_cast<int>(options.chunk)))) << options.chunk;
  }
}

// Running on the stored layout gives what the re-packed one gives.
TEST(RowInvariance, InPlaceWeights) {
  for (const StoredAs& stored : test::every_scheme()) {
    const TestModel model = test::random_model(stored, 3);
    const auto ids = test::random_ids(12, model.spec.vocab_size, 5);
    DecoderOptions options{.isa = {}, .context = 64, .chunk = 64};
    const Logits expected = run_alone(*test::load(model, options), ids, 12);
    options.repack = false;
    EXPECT_TRUE(same_bits(expected, run_alone(*test::load(model, options), ids, 5))) << test::name_of(stored);
  }
}

class Fixture : public ::testing::TestWithParam<const char*> {};

TEST_P(Fixture, LongRandomPrompts) {
  const TestModel model = test::fixture(GetParam());
  std::mt19937_64 random(29);
  // Weights are bfloat16, so i16 would repeat the arithmetic of f32.
  for (const ops::Compute compute : {ops::Compute::kI8, ops::Compute::kF32}) {
    const auto ids = test::random_ids(780 + random() % 40, model.spec.vocab_size, random());
    expect_same_everywhere(model, {.compute = compute, .isa = {}}, ids, 280, random);
  }
}

INSTANTIATE_TEST_SUITE_P(RowInvariance, Fixture, ::testing::Values("gemma3", "mistral", "gemma2", "phi3"),
                         [](const auto& info) { return std::string(info.param); });

// One request of a batch, and what it must come to.
struct Request {
  GenerateRequest request;
  int64_t arrives = 0;  // step
  std::vector<int32_t> generated;
  std::map<int64_t, std::vector<float>> logits;  // by the position they were drawn for
};

void run_batch(models::Decoder& decoder, const SchedulerConfig& config, std::vector<Request>& requests,
               int64_t* preemptions = nullptr) {
  Runner runner(decoder, config);
  runner.observe([&](const Sequence& sequence, std::span<const float> logits) {
    requests[sequence.id].logits[static_cast<int64_t>(sequence.ids.size())].assign(logits.begin(), logits.end());
  });
  size_t next = 0, finished = 0;
  for (int64_t step = 0; finished < requests.size(); ++step) {
    ASSERT_LT(step, 100000) << "no progress";
    for (; next < requests.size() && requests[next].arrives <= step; ++next) {
      Request& request = requests[next];
      auto sequence =
          make_sequence(request.request,
                        [&request, &finished](const Event& event) {
                          request.generated.insert(request.generated.end(), event.ids.begin(), event.ids.end());
                          finished += event.kind == Event::Kind::kFinished;
                          EXPECT_FALSE(event.error) << event.error->message;
                        },
                        {decoder.spec().vocab_size, 1024, {}, nullptr});
      ASSERT_TRUE(sequence.ok()) << sequence.error().message;
      (*sequence)->id = next;
      runner.add(std::move(*sequence));
    }
    runner.step();
  }
  if (preemptions) *preemptions += runner.preemptions();
}

std::vector<Request> random_requests(size_t n, int64_t vocab_size, std::mt19937_64& random) {
  std::vector<Request> requests(n);
  int64_t arrives = 0;
  for (Request& request : requests) {
    request.request.prompt = test::random_ids(1 + random() % 150, vocab_size, random());
    request.request.max_tokens = 1 + static_cast<int64_t>(random() % 100);
    request.request.sampling.temperature = random() % 2 ? 1.0 : 0.0;
    request.request.sampling.top_k = static_cast<int64_t>(random() % 3) * 20;
    request.request.sampling.repetition_penalty = random() % 2 ? 1.2 : 1.0;
    request.request.sampling.seed = random();
    request.arrives = arrives += static_cast<int64_t>(random() % 4);
  }
  return requests;
}

// The same decoder serves the batch and then each request alone.
void expect_batch_equals_alone(models::Decoder& decoder, const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    std::vector<Request> alone = {request};
    alone[0].arrives = 0;
    alone[0].generated.clear();
    alone[0].logits.clear();
    run_batch(decoder, {.max_rows = 1024, .max_sequences = 1, .prefill_chunk = 1024, .grant_interval = 0}, alone);
    ASSERT_EQ(alone[0].generated, request.generated);
    ASSERT_EQ(static_cast<int64_t>(request.generated.size()), request.request.max_tokens);

    // And the logits of every draw are those of one plain pass over the final text.
    std::vector<int32_t> ids = request.request.prompt;
    ids.insert(ids.end(), request.generated.begin(), request.generated.end());
    const Logits rows = run_alone(decoder, ids, 1024);
    for (const auto& [position, logits] : request.logits)
      ASSERT_TRUE(same_bits({rows[static_cast<size_t>(position) - 1]}, {logits})) << "position " << position;
  }
}

class Batches : public ::testing::TestWithParam<ops::Compute> {};

TEST_P(Batches, ThroughTheScheduler) {
  std::mt19937_64 random(41);
  int64_t preemptions = 0;
  const StoredAs stored[] = {{ops::Scheme::kQ4_K, 0, 0}, {ops::Scheme::kBF16, 0, 0}, {ops::Scheme::kMlxAffine, 4, 64}};
  for (const StoredAs& one : stored) {
    const TestModel model = test::random_model(one);
    const int64_t chunk = 1 + static_cast<int64_t>(random() % 100);
    // Room for one and a half of the longest: sequences are preempted and computed again.
    const auto decoder =
        test::load(model, {.compute = GetParam(), .isa = {}, .threads = 2, .context = 290, .chunk = 1024});
    const SchedulerConfig config{.max_rows = chunk + 8,
                                 .max_sequences = 8,
                                 .prefill_chunk = chunk,
                                 .grant_interval = static_cast<int64_t>(random() % 6)};
    std::vector<Request> requests = random_requests(10, model.spec.vocab_size, random);
    run_batch(*decoder, config, requests, &preemptions);
    if (HasFatalFailure()) return;
    expect_batch_equals_alone(*decoder, requests);
  }
  EXPECT_GT(preemptions, 0) << "the pool was meant to be too small";
}

TEST_P(Batches, OfAFixtureWithWindows) {
  std::mt19937_64 random(43);
  const TestModel model = test::fixture("gemma3");
  const auto decoder = test::load(model, {.compute = GetParam(), .isa = {}, .threads = 2, .sequences = 2});
  std::vector<Request> requests = random_requests(12, model.spec.vocab_size, random);
  run_batch(*decoder, {.max_rows = 90, .max_sequences = 8, .prefill_chunk = 70, .grant_interval = 2}, requests);
  expect_batch_equals_alone(*decoder, requests);
}

INSTANTIATE_TEST_SUITE_P(RowInvariance, Batches,
                         ::testing::Values(ops::Compute::kI8, ops::Compute::kI16, ops::Compute::kF32),
                         [](const auto& info) { return std::string(ops::to_string(info.param)); });

// One seed: the same ids alone, among 8, and with any chunking.
TEST(Seeds, SameIdsAloneInABatchOf8AndAtAnyChunkSize) {
  const TestModel model = test::random_model({ops::Scheme::kQ8_0, 0, 0});
  const auto decoder = test::load(model, {.isa = {}, .threads = 2, .sequences = 8});
  Request request;
  request.request.prompt = test::random_ids(60, model.spec.vocab_size, 3);
  request.request.max_tokens = 40;
  request.request.sampling.temperature = 1.1;
  request.request.sampling.top_p = 0.95;
  request.request.sampling.seed = 1234;
  std::vector<std::vector<int32_t>> found;
  for (const int64_t chunk : {1, 7, 32, 500}) {
    std::vector<Request> alone = {request};
    run_batch(*decoder, {.max_rows = chunk + 8, .max_sequences = 8, .prefill_chunk = chunk, .grant_interval = 3},
              alone);
    found.push_back(alone[0].generated);
  }
  std::mt19937_64 random(5);
  std::vector<Request> batch = random_requests(8, model.spec.vocab_size, random);
  request.arrives = batch[4].arrives;
  batch[4] = request;
  run_batch(*decoder, {.max_rows = 60, .max_sequences = 8, .prefill_chunk = 50, .grant_interval = 3}, batch);
  found.push_back(batch[4].generated);
  for (const auto& ids : found) EXPECT_EQ(ids, found[0]);
  request.request.sampling.seed = 1235;
  std::vector<Request> other = {request};
  run_batch(*decoder, {.max_rows = 60, .max_sequences = 8, .prefill_chunk = 50, .grant_interval = 3}, other);
  EXPECT_NE(other[0].generated, found[0]);
}

}  // namespace
}  // namespace vedette::engine
