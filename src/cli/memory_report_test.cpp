// What `inspect` and --estimate-memory say against what loading the same model takes.
#include "cli/memory_report.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "models/registry.h"

namespace vedette::cli {
namespace {

weights::Checkpoint open_fixture(const std::string& name) {
  const char* folder = std::getenv("VEDETTE_FIXTURES");
  auto opened = weights::open_checkpoint(std::string(folder ? folder : VEDETTE_DEFAULT_FIXTURES) + "/" + name);
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return opened.ok() ? std::move(*opened) : weights::Checkpoint{};
}

struct Case {
  std::string fixture;
  engine::ComputeChoice compute;
  std::optional<ops::DType> asked;  // --cache-type-k and -v
  ops::DType expected;
};

TEST(MemoryReport, CountsWhatTheEngineAllocates) {
  using engine::ComputeChoice;
  using ops::DType;
  // Apertus leaves the range of float16.
  const Case cases[] = {
      {"llama", ComputeChoice::kAuto, {}, DType::kF16},
      {"llama", ComputeChoice::kI8, {}, DType::kF16},
      {"llama", ComputeChoice::kI16, {}, DType::kF16},
      {"llama", ComputeChoice::kF32, {}, DType::kF32},
      {"llama", ComputeChoice::kF32, DType::kBF16, DType::kBF16},
      {"gemma3", ComputeChoice::kI16, {}, DType::kF16},
      {"gemma3", ComputeChoice::kF32, {}, DType::kF32},
      {"apertus", ComputeChoice::kI8, {}, DType::kBF16},
      {"apertus", ComputeChoice::kI16, {}, DType::kBF16},
      {"apertus", ComputeChoice::kF32, {}, DType::kF32},
      {"apertus", ComputeChoice::kI16, DType::kF32, DType::kF32},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.fixture + ", compute " + std::to_string(static_cast<int>(c.compute)));
    const weights::Checkpoint checkpoint = open_fixture(c.fixture);
    const auto spec = models::build_spec(checkpoint);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    MemoryQuery query;
    query.tokens = 300;
    query.load.compute = c.compute;
    query.load.kv_type = c.asked;
    query.load.max_sequences = 3;
    query.load.prefill_chunk = 64;
    query.load.threads = 1;
    const MemoryReport report = report_memory(checkpoint, &*spec, query);
    EXPECT_EQ(report.kv_type, c.expected);

    engine::LoadOptions load = query.load;
    load.context_length = query.tokens;
    load.prefix_cache = false;  // it takes what is left over
    const auto loaded = engine::load_decoder(checkpoint, load);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(loaded->report.kv_type, c.expected);
    EXPECT_EQ(report.kv_bytes, loaded->report.memory.kv_bytes);
    EXPECT_EQ(report.kv_bytes, loaded->report.estimate.kv_bytes);
    EXPECT_EQ(report.activation_bytes, loaded->report.estimate.activation_bytes);
    EXPECT_EQ(report.program_bytes, loaded->report.estimate.program_bytes);
    EXPECT_GT(report.program_bytes, 0);
  }
}

}  // namespace
}  // namespace vedette::cli
