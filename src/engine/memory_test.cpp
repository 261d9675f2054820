#include "engine/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace vedette::engine {
namespace {

constexpr int64_t kMiB = 1024 * 1024;

// A folder that looks like / to available_memory().
class FakeRoot {
 public:
  FakeRoot() {
    const char* name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    root_ = std::filesystem::temp_directory_path() / fmt::format("vedette_memory_{}_{}", name, ::getpid());
    std::filesystem::remove_all(root_);
  }
  ~FakeRoot() { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Result<int64_t> available() const { return available_memory(root_.string() + "/"); }

 private:
  std::filesystem::path root_;
};

TEST(AvailableMemory, IsMemAvailable) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal:       24683652 kB\nMemFree:   10 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(*root.available(), 1000 * 1024);
}

TEST(AvailableMemory, IsLoweredByACgroupV2AndThoseAbove) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemAvailable: 1000000 kB\n");
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/a/memory.current", "700000\n");
  EXPECT_EQ(*root.available(), 300000);
  root.write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\nactive_file 50000\n");
  EXPECT_EQ(*root.available(), 450000);  // file cache is given back
  root.write("sys/fs/cgroup/a/b/memory.max", "1000\n");
  root.write("sys/fs/cgroup/a/b/memory.current", "2000\n");
  EXPECT_EQ(*root.available(), 0);
}

TEST(AvailableMemory, IsLoweredByACgroupV1) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemAvailable: 1000000 kB\n");
  root.write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/not/visible/here\n0::/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(*root.available(), 400000);
}

TEST(AvailableMemory, WithoutAnySourceIsAnError) {
  const FakeRoot root;
  const auto available = root.available();
  ASSERT_FALSE(available.ok());
  EXPECT_EQ(available.error().kind, ErrorKind::kUnavailable);
}

TEST(AvailableMemory, OfThisMachine) {
  const auto available = available_memory();
  ASSERT_TRUE(available.ok());
  EXPECT_GT(*available, 0);
}

// Full: 4 layers of 2 heads of 64 in 2 bytes: 2 KiB a token. Sliding: the same, window 64.
const std::vector<models::KvGroupPlan> kGroups = {{0, 4, 2, 64, 64}, {64, 4, 2, 64, 64}};

KvPlanInput input_of(int64_t available) {
  KvPlanInput input;
  input.groups = kGroups;
  input.weight_bytes = 100 * kMiB;
  input.activation_bytes = 10 * kMiB;
  input.model_context = 8192;
  input.max_sequences = 4;
  input.prefill_chunk = 128;
  input.available_bytes = available;
  return input;
}

TEST(KvPlan, TakesWhatAllSequencesNeed) {
  const auto plan = plan_kv(input_of(1000 * kMiB));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->context_length, 8192);
  EXPECT_EQ(plan->sequences, 4);
  // 8192 / 32 blocks; 64 + 128 - 1 tokens at the worst alignment are 7.
  EXPECT_EQ(plan->blocks, (std::vector<int64_t>{4 * 256, 4 * 7}));
  EXPECT_EQ(plan->memory.kv_bytes, (4 * 256 + 4 * 7) * 32 * 2048);
  EXPECT_TRUE(plan->memory.fits());
}

TEST(KvPlan, SharesTheBudgetWhenAllDoNotFit) {
  KvPlanInput input = input_of(1000 * kMiB);
  input.kv_budget_bytes = 40 * kMiB;  // one context is 16.4 MiB
  const auto plan = plan_kv(input);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->sequences, 2);
  EXPECT_LE(plan->memory.kv_bytes, 40 * kMiB);
  EXPECT_GT(plan->memory.kv_bytes, 39 * kMiB);
}

TEST(KvPlan, ThePrefixCacheGetsWhatWasAskedForAsFarAsItFits) {
  KvPlanInput input = input_of(1000 * kMiB);
  input.cache_tokens = 16384;
  auto plan = plan_kv(input);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->sequences, 4);
  // 512 blocks, and 8 snapshots of at most 3.
  EXPECT_EQ(plan->blocks, (std::vector<int64_t>{4 * 256 + 512, 4 * 7 + 24}));
  input.kv_budget_bytes = 80 * kMiB;  // the four contexts take 65.75 MiB
  plan = plan_kv(input);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->sequences, 4);
  EXPECT_LE(plan->memory.kv_bytes, 80 * kMiB);
  EXPECT_GT(plan->memory.kv_bytes, 79 * kMiB);
  // By default one more context, but not more than half of the rest.
  input.cache_tokens = -1;
  plan = plan_kv(input);
  ASSERT_TRUE(plan.ok());
  EXPECT_GT(plan->blocks[0], 4 * 256);
  EXPECT_LE(plan->memory.kv_bytes, 73 * kMiB);
  input.kv_budget_bytes = 0;
  EXPECT_EQ(plan_kv(input)->blocks[0], 5 * 256);
}

TEST(KvPlan, LowersTheModelsContextToWhatFits) {
  KvPlanInput input = input_of(1000 * kMiB);
  input.kv_budget_bytes = 4 * kMiB;
  const auto plan = plan_kv(input);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->context_length, (4 * kMiB / 2048 / 32 - 7) * 32);
  EXPECT_LE(plan->memory.kv_bytes, 4 * kMiB);
}

TEST(KvPlan, RefusesAContextAskedForThatDoesNotFit) {
  KvPlanInput input = input_of(1000 * kMiB);
  input.kv_budget_bytes = 4 * kMiB;
  input.context_length = 4096;
  const auto plan = plan_kv(input);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kOutOfBudget);
  EXPECT_EQ(plan.error().message,
            "K/V of 4096 tokens needs 8.44 MiB, 4.00 MiB are available for it beside 100.00 MiB of weights; lower "
            "--ctx-size to at most 1824 or use a smaller K/V type");
}

TEST(KvPlan, RefusesWeightsThatDoNotFit) {
  const auto plan = plan_kv(input_of(100 * kMiB));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kOutOfBudget);
  EXPECT_EQ(plan.error().message,
            "the model needs 115.00 MiB for weights and activations, 100.00 MiB are available; use a smaller or more "
            "strongly quantized model, or free memory");
}

TEST(KvPlan, RefusesAContextBeyondTheModels) {
  KvPlanInput input = input_of(1000 * kMiB);
  input.context_length = 9000;
  const auto plan = plan_kv(input);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kInvalidRequest);
  EXPECT_EQ(plan.error().message,
            "a context of 9000 tokens was asked for, the model was trained for 8192; lower --ctx-size");
}

}  // namespace
}  // namespace vedette::engine
