#include "ops/cpu/pool.h"

#include <gtest/gtest.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/pool_threads.h"

namespace vedette::ops::cpu {
namespace {

// Operation i adds 1 to each of its cells after checking that every cell of operation i - 1 was done.
struct Stage {
  const Stage* before = nullptr;
  std::vector<int>* cells = nullptr;  // plain ints: the sanitizer sees whether the pool orders them
  std::atomic<int>* mistakes = nullptr;
  int busy_us = 0;
};

void run_stage(const void* arguments, int64_t chunk, int) {
  const Stage& stage = *static_cast<const Stage*>(arguments);
  if (stage.before != nullptr) {
    for (const int cell : *stage.before->cells) {
      if (cell != 1) stage.mistakes->fetch_add(1);
    }
  }
  if (stage.busy_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(stage.busy_us));
  ++(*stage.cells)[static_cast<size_t>(chunk)];
}

void run_random_programs(int threads, int programs, uint32_t seed) {
  Pool pool(threads);
  ASSERT_EQ(pool.threads(), threads);
  std::mt19937 random(seed);
  std::atomic<int> mistakes{0};
  for (int p = 0; p < programs; ++p) {
    const size_t n = 1 + random() % 20;
    std::vector<std::vector<int>> cells(n);
    std::vector<Stage> stages(n);
    std::vector<Operation> program;
    for (size_t i = 0; i < n; ++i) {
      const int kind = static_cast<int>(random() % 4);
      const int64_t chunks = kind == 0 ? 1 : kind == 1 ? 0 : static_cast<int64_t>(random() % 40);
      cells[i].assign(static_cast<size_t>(chunks), 0);
      stages[i] = {i > 0 ? &stages[i - 1] : nullptr, &cells[i], &mistakes, random() % 50 == 0 ? 100 : 0};
      program.push_back({run_stage, &stages[i], chunks});
    }
    pool.execute(program);
    for (const auto& list : cells) {
      for (const int cell : list) ASSERT_EQ(cell, 1);
    }
  }
  EXPECT_EQ(mistakes.load(), 0);
}

TEST(Pool, RunsEveryChunkOnceAndInOrder) {
  for (const int threads : {1, 2, 3, 4}) run_random_programs(threads, 300, static_cast<uint32_t>(threads));
}

TEST(Pool, SurvivesMoreThreadsThanProcessors) {
  run_random_programs(24, 60, 7);
}

TEST(Pool, WakesParkedThreads) {
  Pool pool(3);
  for (int i = 0; i < 30; ++i) {
    std::atomic<int> ran{0};
    const Operation operation{[](const void* a, int64_t, int) {
                                const_cast<std::atomic<int>*>(static_cast<const std::atomic<int>*>(a))->fetch_add(1);
                              },
                              &ran, 7};
    pool.execute({&operation, 1});
    EXPECT_EQ(ran.load(), 7);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Pool, SeveralCallersTakeTurns) {
  Pool pool(2);
  std::vector<std::thread> callers;
  std::atomic<int> total{0};
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const Operation operation{
            [](const void* a, int64_t, int) {
              const_cast<std::atomic<int>*>(static_cast<const std::atomic<int>*>(a))->fetch_add(1);
            },
            &total, 5};
        pool.execute({&operation, 1});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 1500);
}

// The first thread to run chunk 0 of the first operation stands still until the last operation runs, as if it had lost
// its time slice. Each operation writes its own number over every cell.
struct Overwrite {
  std::vector<int>* cells = nullptr;
  std::vector<int>* results = nullptr;  // per thread
  int number = 0;
  std::atomic<int>* stands_still = nullptr;  // 0: nobody yet, 1: a thread stands still, 2: it may go on
  bool last = false;
};

void run_overwrite(const void* arguments, int64_t chunk, int thread) {
  const Overwrite& o = *static_cast<const Overwrite*>(arguments);
  if (o.last) o.stands_still->store(2);
  int nobody = 0;
  if (o.number == 1 && chunk == 0 && o.stands_still->compare_exchange_strong(nobody, 1)) {
    for (int i = 0; i < 20000 && o.stands_still->load() != 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  (*o.results)[static_cast<size_t>(thread)] = o.number;
}

void publish_overwrite(const void* arguments, int64_t chunk, int thread) {
  const Overwrite& o = *static_cast<const Overwrite*>(arguments);
  (*o.cells)[static_cast<size_t>(chunk)] = (*o.results)[static_cast<size_t>(thread)];
}

TEST(Pool, AChunkWhoseThreadStandsStillIsTakenOver) {
  for (const int threads : {2, 3}) {
    Pool pool(threads);
    std::vector<int> cells(8), results(static_cast<size_t>(threads));
    std::atomic<int> stands_still{0};
    std::vector<Overwrite> stages;
    for (int number = 1; number <= 5; ++number)
      stages.push_back({&cells, &results, number, &stands_still, number == 5});
    std::vector<Operation> program;
    for (const Overwrite& stage : stages) program.push_back({run_overwrite, &stage, 8, publish_overwrite});
    pool.execute(program);
    EXPECT_EQ(cells, std::vector<int>(8, 5));
    EXPECT_EQ(stands_still.load(), 2);
    EXPECT_GE(pool.chunks_taken_over(), 1);
  }
}

#if defined(__x86_64__)
constexpr uint64_t kFlush = 0x8040;  // flush to zero and denormals are zero
uint64_t float_mode() {
  return _mm_getcsr();
}
void set_float_mode(uint64_t mode) {
  _mm_setcsr(static_cast<unsigned>(mode));
}
#elif defined(__aarch64__)
constexpr uint64_t kFlush = 1u << 24;
uint64_t float_mode() {
  uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void set_float_mode(uint64_t mode) {
  asm volatile("msr fpcr, %0" ::"r"(mode));
}
#endif

struct Denormals {
  std::vector<float> results;
};

TEST(Pool, EveryThreadKeepsDenormalsAndTheCallersModeComesBack) {
  Pool pool(4);
  Denormals denormals{std::vector<float>(64, -1.0f)};
  const Operation operation{[](const void* a, int64_t chunk, int) {
                              auto* d = const_cast<Denormals*>(static_cast<const Denormals*>(a));
                              volatile float tiny = std::numeric_limits<float>::min();
                              std::this_thread::sleep_for(std::chrono::microseconds(50));
                              d->results[static_cast<size_t>(chunk)] = tiny / 4.0f;
                            },
                            &denormals, 64};
  const uint64_t before = float_mode();
  set_float_mode(before | kFlush);
  pool.execute({&operation, 1});
  const uint64_t after = float_mode();
  set_float_mode(before);
  EXPECT_EQ(after & kFlush, kFlush);
  for (const float x : denormals.results) EXPECT_EQ(x, std::numeric_limits<float>::min() / 4.0f);
}

class FakeRoot {
 public:
  FakeRoot() : path_(std::filesystem::temp_directory_path() / ("vedette-pool-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    const auto full = path_.string() + file;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full) << text << "\n";
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(ThreadCount, CountsSiblingsOnce) {
  const FakeRoot root;
  for (const int cpu : {0, 1, 2, 3}) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    root.write(folder + "physical_package_id", "0");
    root.write(folder + "core_id", std::to_string(cpu % 2));
  }
  const std::vector<int> all{0, 1, 2, 3}, some{1, 3}, unknown{0, 9};
  EXPECT_EQ(count_cores(all, root.path()), 2);
  EXPECT_EQ(count_cores(some, root.path()), 1);
  EXPECT_EQ(count_cores(unknown, root.path()), 2);
}

TEST(ThreadCount, ReadsQuotasOfBothVersions) {
  const FakeRoot two;
  two.write("/proc/self/cgroup", "0::/a/b");
  EXPECT_FALSE(cgroup_cpu_quota(two.path()).has_value());
  two.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  EXPECT_FALSE(cgroup_cpu_quota(two.path()).has_value());
  two.write("/sys/fs/cgroup/a/cpu.max", "150000 100000");
  EXPECT_EQ(cgroup_cpu_quota(two.path()).value_or(0), 1.5);
  two.write("/proc/self/cgroup", "0::/elsewhere/on/the/host");
  two.write("/sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_EQ(cgroup_cpu_quota(two.path()).value_or(0), 3.0);
  two.write("/proc/self/cgroup", "4:memory:/\n3:cpu,cpuacct:/x\n");
  two.write("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1");
  two.write("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(cgroup_cpu_quota(two.path()).has_value());
  two.write("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "250000");
  EXPECT_EQ(cgroup_cpu_quota(two.path()).value_or(0), 2.5);
}

TEST(ThreadCount, IsAtLeastOne) {
  EXPECT_GE(default_thread_count(), 1);
}

}  // namespace
}  // namespace vedette::ops::cpu
