// The numerical contract: the logits of a row depend on its sequence's rows at or before it alone. Whatever the
// chunking, the batch, the thread count and the instruction set, they are equal bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "base/property_test.h"
#include "engine/evaluate.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/test_models.h"

namespace vedette::engine {
namespace {

using test::DecoderOptions;
using test::StoredAs;
using test::TestModel;
using vedette::test::between;
using vedette::test::bits;
using vedette::test::check_property;
using vedette::test::list_of;
using vedette::test::require;
using vedette::test::token_ids;

using Logits = std::vector<std::vector<float>>;  // [row, vocabulary]

Logits run_alone(models::Decoder& decoder, const std::vector<int32_t>& ids, int chunk) {
  Logits rows;
  const Status status = evaluate(decoder, ids, chunk, [&](int64_t, std::span<const float> logits) {
    rows.emplace_back(logits.begin(), logits.end());
    return ok_status();
  });
  if (!status.ok()) throw std::runtime_error(status.error().message);
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

// Variants of one decoder that must not change a bit, over drawn chunk sizes, thread counts and states of the K/V
// pages. The portable kernels are slow: they run the first `portable_rows` rows, which by the same contract do not
// depend on the rest.
void require_same_everywhere(const TestModel& model, DecoderOptions options, const std::vector<int32_t>& ids,
                             size_t portable_rows) {
  options.isa = ops::cpu::available_isas().back();
  const Logits expected = run_alone(*test::load(model, options), ids, static_cast<int>(ids.size()));
  require(sane(expected));
  const auto check = [&](ops::cpu::Isa isa, int threads, size_t rows, size_t most) {
    options.isa = isa;
    options.threads = threads;
    const auto decoder = test::load(model, options);
    const std::string where = std::string(ops::cpu::to_string(isa)) + ", " + std::to_string(threads) + " threads";
    const int chunk = *between(1, static_cast<int>(most)).as(where + ": rows of a step");
    const auto before = *token_ids(1, 24, model.spec.vocab_size).as(where + ": what the pages hold before");
    run_alone(*decoder, before, 24);
    const std::vector<int32_t> run(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(rows));
    const Logits first(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(rows));
    require(same_bits(first, run_alone(*decoder, run, chunk)), where);
  };
  for (const ops::cpu::Isa isa : ops::cpu::available_isas()) {
    if (isa == ops::cpu::Isa::kPortable) {
      check(isa, 2, std::min(portable_rows, ids.size()), portable_rows);
      continue;
    }
    check(isa, 1, ids.size(), 5);
    check(isa, *between(2, 3).as("threads"), ids.size(), ids.size());
  }
}

// Sizes that the scheme can store and that are no multiple of a tile where they need not be.
test::ModelShape draw_shape(const StoredAs& stored) {
  const int64_t block = test::block_of(stored);
  const auto blocks = [block](int64_t least, int64_t most) {
    return between((least + block - 1) / block, std::max((least + block - 1) / block, most / block));
  };
  test::ModelShape shape;
  shape.vocab_size = 16 * *between<int64_t>(17, 21).as("whole tiles of the vocabulary") +
                     *between<int64_t>(1, 15).as("vocabulary beyond whole tiles");
  shape.hidden = block * *blocks(190, 256).as("hidden size in blocks");
  shape.intermediate = block * *blocks(190, 256).as("intermediate size in blocks");
  // A product's columns: all heads together fill blocks.
  const int64_t step = std::max<int64_t>(2, block / shape.n_heads);
  shape.head_dim = step * *between((32 + step - 1) / step, 64 / step).as("head size in steps");
  shape.n_kv_heads = int64_t{1} << *between(0, 2).as("log2 of the K/V heads");
  shape.window = *between(1, 40).as("window");
  return shape;
}

class EveryScheme : public ::testing::TestWithParam<std::tuple<StoredAs, ops::Compute>> {};

TEST_P(EveryScheme, ChunksThreadsAndInstructionSets) {
  const auto& [stored, compute] = GetParam();
  check_property("", 1, [stored = stored, compute = compute] {
    const TestModel model = test::random_model(stored, *bits().as("weights"), draw_shape(stored));
    // 3 pages, past the window.
    const auto ids = *token_ids(66, 90, model.spec.vocab_size).as("prompt");
    require_same_everywhere(model, {.compute = compute, .isa = {}, .context = 128, .chunk = 128}, ids, 40);
  });
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
  const ops::DType types[] = {ops::DType::kF16, ops::DType::kF32, ops::DType::kBF16};
  const ops::Compute computes[] = {ops::Compute::kI8, ops::Compute::kF32, ops::Compute::kI16};
  const TestModel model = test::random_model({ops::Scheme::kQ4_1, 0, 0});
  for (int i = 0; i < 3; ++i)
    check_property(ops::to_string(types[i]), 1, [&] {
      const auto ids = *token_ids(790, 840, model.spec.vocab_size).as("prompt");
      DecoderOptions options{.compute = computes[i], .isa = {}, .kv_type = types[i]};
      const Logits expected = run_alone(*test::load(model, options), ids, 1000);
      require(sane(expected));
      options.threads = 2;
      options.chunk = *between<int64_t>(1, 300).as("rows of a step");
      require(same_bits(expected, run_alone(*test::load(model, options), ids, static_cast<int>(options.chunk))));
    });
}

// Running on the stored layout gives what the re-packed one gives.
TEST(RowInvariance, InPlaceWeights) {
  for (const StoredAs& stored : test::every_scheme())
    check_property(test::name_of(stored), 1, [&] {
      const TestModel model = test::random_model(stored, *bits().as("weights"), draw_shape(stored));
      const auto ids = *token_ids(8, 16, model.spec.vocab_size).as("prompt");
      DecoderOptions options{.isa = {}, .context = 64, .chunk = 64};
      const Logits expected = run_alone(*test::load(model, options), ids, 16);
      options.repack = false;
      const int chunk = *between(1, 12).as("rows of a step");
      require(same_bits(expected, run_alone(*test::load(model, options), ids, chunk)));
    });
}

class Fixture : public ::testing::TestWithParam<const char*> {};

TEST_P(Fixture, LongRandomPrompts) {
  const TestModel model = test::fixture(GetParam());
  // Weights are bfloat16, so i16 would repeat the arithmetic of f32.
  for (const ops::Compute compute : {ops::Compute::kI8, ops::Compute::kF32})
    check_property(ops::to_string(compute), 1, [&] {
      const auto ids = *token_ids(780, 820, model.spec.vocab_size).as("prompt");
      require_same_everywhere(model, {.compute = compute, .isa = {}}, ids, 280);
    });
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

// How rapidcheck prints a case.
void showValue(const Request& request, std::ostream& out) {
  const sampling::SamplingParams& sampling = request.request.sampling;
  out << "{prompt of " << request.request.prompt.size() << ", max_tokens " << request.request.max_tokens
      << ", temperature " << sampling.temperature << ", top_k " << sampling.top_k << ", repetition_penalty "
      << sampling.repetition_penalty << ", seed " << sampling.seed.value_or(0) << ", step " << request.arrives << "}";
}

void run_batch(models::Decoder& decoder, const SchedulerConfig& config, std::vector<Request>& requests,
               int64_t* preemptions = nullptr) {
  Runner runner(decoder, config);
  runner.observe([&](const Sequence& sequence, std::span<const float> logits) {
    requests[sequence.id].logits[static_cast<int64_t>(sequence.ids.size())].assign(logits.begin(), logits.end());
  });
  size_t next = 0, finished = 0;
  for (int64_t step = 0; finished < requests.size(); ++step) {
    if (step >= 100000) throw std::runtime_error("no progress");
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
      if (!sequence.ok()) throw std::runtime_error(sequence.error().message);
      (*sequence)->id = next;
      runner.add(std::move(*sequence));
    }
    runner.step();
  }
  if (preemptions) *preemptions += runner.preemptions();
}

// most_prompt, least_tokens to most_tokens: of the prompt, and to generate.
rc::Gen<Request> any_request(int64_t vocab_size, size_t most_prompt, int64_t least_tokens, int64_t most_tokens) {
  using rc::gen::set;
  const auto sampling = rc::gen::build<sampling::SamplingParams>(
      set(&sampling::SamplingParams::temperature, rc::gen::element(0.0, 1.0)),
      set(&sampling::SamplingParams::top_k, rc::gen::element<int64_t>(0, 20, 40)),
      set(&sampling::SamplingParams::repetition_penalty, rc::gen::element(1.0, 1.2)),
      set(&sampling::SamplingParams::seed, rc::gen::cast<std::optional<uint64_t>>(bits())));
  return rc::gen::build<Request>(
      set(&Request::request,
          rc::gen::build<GenerateRequest>(set(&GenerateRequest::prompt, token_ids(1, most_prompt, vocab_size)),
                                          set(&GenerateRequest::max_tokens, between(least_tokens, most_tokens)),
                                          set(&GenerateRequest::sampling, sampling))),
      set(&Request::arrives, between<int64_t>(0, 3)));  // after the one before
}

// Requests that come one after another; fewer are simpler.
std::vector<Request> draw_requests(size_t least, size_t most, int64_t vocab_size) {
  const auto any = list_of(between<size_t>(least, most, 1), any_request(vocab_size, 150, 1, 100));
  std::vector<Request> requests = *any.as("requests (step: after the one before)");
  int64_t arrives = 0;
  for (Request& request : requests) request.arrives = arrives += request.arrives;
  return requests;
}

// The same decoder serves the batch and then each request alone.
void require_batch_equals_alone(models::Decoder& decoder, const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    std::vector<Request> alone = {request};
    alone[0].arrives = 0;
    alone[0].generated.clear();
    alone[0].logits.clear();
    run_batch(decoder, {.max_rows = 1024, .max_sequences = 1, .prefill_chunk = 1024, .grant_interval = 0}, alone);
    RC_ASSERT(alone[0].generated == request.generated);
    RC_ASSERT(static_cast<int64_t>(request.generated.size()) == request.request.max_tokens);

    // And the logits of every draw are those of one plain pass over the final text.
    std::vector<int32_t> ids = request.request.prompt;
    ids.insert(ids.end(), request.generated.begin(), request.generated.end());
    const Logits rows = run_alone(decoder, ids, 1024);
    for (const auto& [position, logits] : request.logits)
      require(same_bits({rows[static_cast<size_t>(position) - 1]}, {logits}), "position " + std::to_string(position));
  }
}

class Batches : public ::testing::TestWithParam<ops::Compute> {};

TEST_P(Batches, ThroughTheScheduler) {
  int64_t preemptions = 0;
  const StoredAs stored[] = {{ops::Scheme::kQ4_K, 0, 0}, {ops::Scheme::kBF16, 0, 0}, {ops::Scheme::kMlxAffine, 4, 64}};
  for (const StoredAs& one : stored) {
    const TestModel model = test::random_model(one);
    check_property(test::name_of(one), 1, [&] {
      // Room for one and a half of the longest: sequences are preempted and computed again, on pages in any order.
      const auto decoder = test::load(
          model,
          {.compute = GetParam(), .isa = {}, .threads = *between(1, 3).as("threads"), .context = 290, .chunk = 1024});
      const int64_t chunk = *between<int64_t>(1, 100).as("rows of a prefill chunk");
      const SchedulerConfig config{.max_rows = chunk + 8,
                                   .max_sequences = 8,
                                   .prefill_chunk = chunk,
                                   .grant_interval = *between<int64_t>(0, 5).as("grant interval")};
      // Two that outgrow the pool while both decode, however slowly the second is prefilled; then others.
      std::vector<Request> requests =
          *list_of(rc::gen::just<size_t>(2), any_request(model.spec.vocab_size, 8, 170, 200)).as("growing requests");
      for (Request& request : draw_requests(5, 8, model.spec.vocab_size)) requests.push_back(std::move(request));
      std::stable_sort(requests.begin(), requests.end(),
                       [](const Request& a, const Request& b) { return a.arrives < b.arrives; });
      run_batch(*decoder, config, requests, &preemptions);
      require_batch_equals_alone(*decoder, requests);
    });
  }
  EXPECT_GT(preemptions, 0) << "the pool was meant to be too small";
}

TEST_P(Batches, OfAFixtureWithWindows) {
  const TestModel model = test::fixture("gemma3");
  check_property("", 1, [&] {
    const auto decoder =
        test::load(model, {.compute = GetParam(), .isa = {}, .threads = *between(1, 3).as("threads"), .sequences = 2});
    const int64_t chunk = *between<int64_t>(20, 90).as("rows of a prefill chunk");
    std::vector<Request> requests = draw_requests(10, 13, model.spec.vocab_size);
    run_batch(*decoder, {.max_rows = chunk + 8, .max_sequences = 8, .prefill_chunk = chunk, .grant_interval = 2},
              requests);
    require_batch_equals_alone(*decoder, requests);
  });
}

INSTANTIATE_TEST_SUITE_P(RowInvariance, Batches,
                         ::testing::Values(ops::Compute::kI8, ops::Compute::kI16, ops::Compute::kF32),
                         [](const auto& info) { return std::string(ops::to_string(info.param)); });

// One seed: the same ids alone, among 8, and with any chunking.
TEST(Seeds, SameIdsAloneInABatchOf8AndAtAnyChunkSize) {
  const TestModel model = test::random_model({ops::Scheme::kQ8_0, 0, 0});
  const auto decoder = test::load(model, {.isa = {}, .threads = 2, .sequences = 8});
  check_property("", 1, [&] {
    Request request;
    request.request.prompt = *token_ids(50, 70, model.spec.vocab_size).as("prompt");
    request.request.max_tokens = 40;
    request.request.sampling.temperature = 1.1;
    request.request.sampling.top_p = 0.95;
    const uint64_t seed = *bits().as("seed");
    request.request.sampling.seed = seed;
    const auto ids_alone = [&](int64_t chunk) {
      std::vector<Request> alone = {request};
      alone[0].arrives = 0;
      run_batch(*decoder, {.max_rows = chunk + 8, .max_sequences = 8, .prefill_chunk = chunk, .grant_interval = 3},
                alone);
      return alone[0].generated;
    };
    const std::vector<int32_t> expected = ids_alone(500);
    RC_ASSERT(ids_alone(1) == expected);
    for (int i = 0; i < 2; ++i) RC_ASSERT(ids_alone(*between<int64_t>(2, 80).as("rows of a chunk")) == expected);
    std::vector<Request> batch = draw_requests(8, 8, model.spec.vocab_size);
    const size_t place = batch.size() / 2;
    request.arrives = batch[place].arrives;
    batch[place] = request;
    run_batch(*decoder, {.max_rows = 60, .max_sequences = 8, .prefill_chunk = 50, .grant_interval = 3}, batch);
    RC_ASSERT(batch[place].generated == expected);
    request.request.sampling.seed = seed + 1;
    RC_ASSERT(ids_alone(50) != expected);
  });
}

}  // namespace
}  // namespace vedette::engine
