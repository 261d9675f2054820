#include "ops/cpu/pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace vedette::ops::cpu {
namespace {

// Round to nearest, exceptions masked, denormals kept: no flush-to-zero, no denormals-are-zero.
constexpr unsigned kFloatMode = 0x1f80;
constexpr auto kSpin = std::chrono::microseconds(40);

class FloatMode {
 public:
#if defined(__x86_64__)
  FloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kFloatMode); }
  ~FloatMode() { _mm_setcsr(before_); }
#else
  FloatMode() = default;
  ~FloatMode() = default;
#endif
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  [[maybe_unused]] unsigned before_ = kFloatMode;
};

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// Threads that sleep until something changes. The sleeper announces itself, looks once more and only then waits;
// whoever changes something looks for sleepers afterwards, so one of the two sees the other.
class Parking {
 public:
  // changed(): true once there is a reason not to sleep.
  template <typename Changed>
  void park(Changed changed) {
    const uint32_t ticket = ticket_.load(std::memory_order_seq_cst);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (!changed()) {
      syscall(SYS_futex, reinterpret_cast<uint32_t*>(&ticket_), FUTEX_WAIT_PRIVATE, ticket, nullptr, nullptr, 0);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  void wake(int count) {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    ticket_.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&ticket_), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
  }

 private:
  alignas(64) std::atomic<uint32_t> ticket_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace

// The word holds (sequence number of the open operation, chunks nobody has claimed yet); a claim takes one chunk off
// by compare-and-swap. A thread reads the program only while it holds a claim: the operation cannot finish without
// that chunk, so the program cannot change under it. The thread that finishes the last chunk stores the next word.
struct Pool::Impl {
  alignas(64) std::atomic<uint64_t> word{0};
  alignas(64) std::atomic<int64_t> done{0};
  std::span<const Operation> program;  // published by the store to `word`
  uint32_t first_sequence = 0;         // sequence number of program[0]
  std::atomic<bool> stopping{false};
  Parking workers;
  Parking caller;
  std::mutex callers;
  std::vector<std::thread> threads;
  int n_threads = 1;

  static uint64_t pack(uint32_t sequence, uint64_t unclaimed) { return (uint64_t{sequence} << 32) | unclaimed; }
  static uint32_t sequence_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static uint32_t unclaimed_of(uint64_t word) { return static_cast<uint32_t>(word); }

  // Opens the first operation at or after `index` that has chunks; past the end, the word says so.
  void open(size_t index) {
    while (index < program.size() && program[index].n_chunks <= 0) ++index;
    done.store(0, std::memory_order_relaxed);
    const bool ended = index >= program.size();
    const int64_t chunks = ended ? 0 : program[index].n_chunks;
    const uint32_t sequence = first_sequence + static_cast<uint32_t>(std::min(index, program.size()));
    word.store(pack(sequence, static_cast<uint64_t>(chunks)), std::memory_order_seq_cst);
    // `program` may be gone from here on.
    if (ended) {
      caller.wake(1);
    } else if (chunks > 1) {
      workers.wake(static_cast<int>(std::min<int64_t>(chunks - 1, n_threads)));
      caller.wake(1);
    }
  }

  // Claims and runs chunks until none is left unclaimed. Returns the word that said so.
  uint64_t work(int thread) {
    uint64_t seen = word.load(std::memory_order_acquire);
    while (unclaimed_of(seen) > 0) {
      if (!word.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      const size_t index = sequence_of(seen) - first_sequence;
      const Operation operation = program[index];
      operation.run(operation.arguments, operation.n_chunks - unclaimed_of(seen), thread);
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == operation.n_chunks) open(index + 1);
      seen = word.load(std::memory_order_acquire);
    }
    return seen;
  }

  // Waits until the word differs from `seen`, first spinning, then asleep.
  void await_change(uint64_t seen, Parking& parking) {
    const auto changed = [&] {
      return word.load(std::memory_order_seq_cst) != seen || stopping.load(std::memory_order_seq_cst);
    };
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 16; ++i) {
        if (changed()) return;
        pause_briefly();
      }
    } while (std::chrono::steady_clock::now() < deadline);
    parking.park(changed);
  }

  void run_worker(int thread) {
    const FloatMode mode;
    while (!stopping.load(std::memory_order_acquire)) {
      await_change(work(thread), workers);
    }
  }
};

Pool::Pool(int threads) : impl_(std::make_unique<Impl>()) {
  impl_->n_threads = std::max(1, threads);
  for (int i = 1; i < impl_->n_threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get(), i] { impl->run_worker(i); });
  }
}

Pool::~Pool() {
  impl_->stopping.store(true, std::memory_order_seq_cst);
  impl_->workers.wake(impl_->n_threads);
  for (std::thread& thread : impl_->threads) thread.join();
}

int Pool::threads() const {
  return impl_->n_threads;
}

void Pool::execute(std::span<const Operation> program) {
  if (program.empty()) return;
  const std::lock_guard lock(impl_->callers);
  const FloatMode mode;
  if (impl_->n_threads == 1) {
    for (const Operation& operation : program) {
      for (int64_t chunk = 0; chunk < operation.n_chunks; ++chunk) operation.run(operation.arguments, chunk, 0);
    }
    return;
  }
  impl_->program = program;
  // One more than the last program's end, so that no word of an earlier program is ever seen again (until the
  // 32-bit sequence wraps, which a thread would have to sleep through exactly).
  impl_->first_sequence = Impl::sequence_of(impl_->word.load(std::memory_order_relaxed)) + 1;
  const uint32_t end = impl_->first_sequence + static_cast<uint32_t>(program.size());
  impl_->open(0);
  for (;;) {
    const uint64_t seen = impl_->work(0);
    if (Impl::sequence_of(seen) == end) return;
    impl_->await_change(seen, impl_->caller);
  }
}

}  // namespace vedette::ops::cpu
