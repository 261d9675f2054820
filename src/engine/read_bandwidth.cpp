#include "engine/read_bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/memory.h"

namespace vedette::engine {
namespace {

constexpr int kPasses = 6;
constexpr size_t kLanes = 32;
constexpr size_t kAhead = 512;  // words
constexpr size_t kLine = 64 / sizeof(uint64_t);

// Sums in independent lanes, so that nothing waits for an addition. Asks for lines ahead as the products do: they read
// faster than a plain loop where the processor's own prefetching is weak, and a ceiling must not lie below.
uint64_t sum(const uint64_t* words, size_t count) {
  uint64_t lanes[kLanes] = {};
  for (size_t i = 0; i + kLanes <= count; i += kLanes) {
    for (size_t line = 0; line < kLanes; line += kLine) __builtin_prefetch(words + i + kAhead + line);
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += words[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t lane : lanes) total += lane;
  return total;
}

}  // namespace

Result<double> measure_read_bandwidth(int threads) {
  const auto bytes = static_cast<size_t>(kReadBufferBytes);
  VEDETTE_ASSIGN_OR_RETURN(const int64_t available, available_memory());
  if (available < 2 * kReadBufferBytes)
    return out_of_budget("", "measuring the memory's bandwidth takes {}, {} are available",
                         format_bytes(kReadBufferBytes), format_bytes(available));
  const auto unmap = [bytes](void* memory) { munmap(memory, bytes); };
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return out_of_budget("", "no {} of memory to measure its bandwidth with", format_bytes(kReadBufferBytes));
  const std::unique_ptr<void, decltype(unmap)> memory(mapped, unmap);
  (void)madvise(mapped, bytes, MADV_HUGEPAGE);  // without huge pages the figure is a little lower

  const auto count = static_cast<size_t>(std::max(threads, 1));
  const size_t share = bytes / count / 4096 * 4096;
  std::vector<uint64_t> sums(count);
  double best = 0;
  auto begin = std::chrono::steady_clock::now();
  int pass = 0;
  const auto pass_done = [&]() noexcept {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - begin).count();
    if (pass++ > 0) best = std::max(best, static_cast<double>(share * count) / seconds);  // the first one writes
    begin = now;
  };
  std::barrier barrier(static_cast<std::ptrdiff_t>(count), pass_done);
  const auto work = [&](size_t index) {
    auto* part = static_cast<std::byte*>(mapped) + index * share;
    std::memset(part, static_cast<int>(index + 1), share);
    barrier.arrive_and_wait();
    for (int i = 0; i < kPasses; ++i) {
      sums[index] += sum(reinterpret_cast<const uint64_t*>(part), share / sizeof(uint64_t));
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < count; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  // Looked at, so that the reading cannot be left out.
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = 0x0101010101010101u * ((i + 1) & 0xFF);
    if (sums[i] != word * (share / (sizeof(uint64_t) * kLanes) * kLanes) * kPasses)
      return internal_error("", "memory did not hold what was written into it while its bandwidth was measured");
  }
  return best;
}

}  // namespace vedette::engine
