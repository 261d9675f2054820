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
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace vedette::ops::cpu {
namespace {

// Round to nearest, exceptions masked, denormals kept: no flush-to-zero, no denormals-are-zero.
#if defined(__aarch64__)
constexpr uint64_t kFloatMode = 0;
#else
constexpr unsigned kFloatMode = 0x1f80;
#endif
constexpr auto kSpin = std::chrono::microseconds(40);

class FloatMode {
 public:
#if defined(__x86_64__)
  FloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kFloatMode); }
  ~FloatMode() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  FloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    set(kFloatMode);
  }
  ~FloatMode() { set(before_); }
  static void set(uint64_t mode) { asm volatile("msr fpcr, %0" ::"r"(mode)); }
#else
  FloatMode() = default;
  ~FloatMode() = default;
#endif
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  [[maybe_unused]] std::remove_const_t<decltype(kFloatMode)> before_ = kFloatMode;
};

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // tens of cycles, as x86's pause; yield ends at once on most cores
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

// Callers by turns, in the order in which they came.
class Turns {
 public:
  void take() {
    std::unique_lock lock(mutex_);
    const uint64_t mine = next_++;
    changed_.wait(lock, [&] { return serving_ == mine; });
  }
  void give() {
    const std::scoped_lock lock(mutex_);
    ++serving_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, serving_ = 0;
};

// Who does a chunk of an operation with publish: its place in `states` holds (sequence number of the operation, state).
enum ChunkState : uint64_t { kOpen, kTakenOver, kPublished };
// Operations of more chunks are not watched so closely.
constexpr int64_t kMostStates = 2048;
// A thread without work looks this long for a sign of life before it runs another's chunk again: at least this, and at
// least what a chunk of its own took.
constexpr auto kPatience = std::chrono::microseconds(10);

}  // namespace

// The word holds (sequence number of the open operation, chunks nobody has claimed yet, or kEnded); a claim takes one
// chunk off by compare-and-swap. `inside` counts the threads that may read the program: execute() returns at 0, so
// neither the program nor its arguments can go while a thread that lost its time slice is in the middle of them. The
// thread that finishes the last chunk stores the next word.
struct Pool::Impl {
  static constexpr uint32_t kEnded = 1u << 31;

  alignas(64) std::atomic<uint64_t> word{kEnded};
  alignas(64) std::atomic<int64_t> done{0};
  alignas(64) std::atomic<int> inside{0};
  std::span<const Operation> program;  // published by the store to `word`
  uint32_t first_sequence = 0;         // sequence number of program[0]
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> taken_over{0};
  std::unique_ptr<std::atomic<uint64_t>[]> states = std::make_unique<std::atomic<uint64_t>[]>(kMostStates);
  Parking workers;
  Parking caller;
  Turns turns;
  std::vector<std::thread> threads;
  int n_threads = 1;

  static uint64_t pack(uint32_t sequence, uint64_t unclaimed) { return (uint64_t{sequence} << 32) | unclaimed; }
  static uint32_t sequence_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static bool ended(uint64_t word) { return (word & kEnded) != 0; }
  static uint32_t unclaimed_of(uint64_t word) { return ended(word) ? 0 : static_cast<uint32_t>(word); }
  static uint64_t state(uint32_t sequence, ChunkState what) { return (uint64_t{sequence} << 2) | what; }
  static bool may_be_taken_over(const Operation& operation) {
    return operation.publish != nullptr && operation.n_chunks <= kMostStates;
  }

  void enter() { inside.fetch_add(1, std::memory_order_seq_cst); }
  void leave() {
    if (inside.fetch_sub(1, std::memory_order_seq_cst) == 1 && ended(word.load(std::memory_order_seq_cst)))
      caller.wake(1);
  }

  // Opens the first operation at or after `index` that has chunks; past the end, the word says so.
  void open(size_t index) {
    while (index < program.size() && program[index].n_chunks <= 0) ++index;
    done.store(0, std::memory_order_relaxed);
    const uint32_t sequence = first_sequence + static_cast<uint32_t>(std::min(index, program.size()));
    if (index >= program.size()) {
      word.store(pack(sequence, kEnded), std::memory_order_seq_cst);
      caller.wake(1);
      return;
    }
    const int64_t chunks = program[index].n_chunks;
    if (may_be_taken_over(program[index])) {
      for (int64_t c = 0; c < chunks; ++c)
        states[static_cast<size_t>(c)].store(state(sequence, kOpen), std::memory_order_relaxed);
    }
    word.store(pack(sequence, static_cast<uint64_t>(chunks)), std::memory_order_seq_cst);
    if (chunks > 1) {
      workers.wake(static_cast<int>(std::min<int64_t>(chunks - 1, n_threads)));
      caller.wake(1);
    }
  }

  // Whether this thread's result of the chunk is the one that counts.
  bool claim_publication(uint32_t sequence, int64_t chunk) {
    std::atomic<uint64_t>& place = states[static_cast<size_t>(chunk)];
    uint64_t seen = place.load(std::memory_order_acquire);
    while (seen == state(sequence, kOpen) || seen == state(sequence, kTakenOver)) {
      if (place.compare_exchange_weak(seen, state(sequence, kPublished), std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  // Runs a chunk to its end. False: another thread's result of it counts.
  bool run(const Operation& operation, size_t index, int64_t chunk, int thread) {
    operation.run(operation.arguments, chunk, thread);
    if (operation.publish != nullptr) {
      if (may_be_taken_over(operation) && !claim_publication(first_sequence + static_cast<uint32_t>(index), chunk))
        return false;
      operation.publish(operation.arguments, chunk, thread);
    }
    if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == operation.n_chunks) open(index + 1);
    return true;
  }

  // Claims and runs chunks until none is left unclaimed. Returns the word that said so, and how long a chunk took.
  struct Worked {
    uint64_t seen = 0;
    std::chrono::steady_clock::duration chunk_time{};
  };
  Worked work(int thread) {
    enter();
    const auto start = std::chrono::steady_clock::now();
    int64_t chunks = 0;
    uint64_t seen = word.load(std::memory_order_seq_cst);
    while (unclaimed_of(seen) > 0) {
      if (!word.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      const size_t index = sequence_of(seen) - first_sequence;
      const Operation operation = program[index];
      run(operation, index, operation.n_chunks - unclaimed_of(seen), thread);
      ++chunks;
      seen = word.load(std::memory_order_acquire);
    }
    leave();
    return {seen, chunks > 0 ? (std::chrono::steady_clock::now() - start) / chunks : std::chrono::seconds(0)};
  }

  // Runs a chunk of the operation that `seen` is about which is not done and which no other thread took over.
  void take_over(uint64_t seen, int thread) {
    enter();
    // While `inside` counts this thread and the word stands, the program does too.
    if (word.load(std::memory_order_seq_cst) == seen && !ended(seen)) {
      const uint32_t sequence = sequence_of(seen);
      const size_t index = sequence - first_sequence;
      const Operation operation = program[index];
      for (int64_t c = 0; may_be_taken_over(operation) && c < operation.n_chunks; ++c) {
        uint64_t open_state = state(sequence, kOpen);
        if (!states[static_cast<size_t>(c)].compare_exchange_strong(open_state, state(sequence, kTakenOver),
                                                                    std::memory_order_acq_rel))
          continue;
        if (run(operation, index, c, thread)) taken_over.fetch_add(1, std::memory_order_relaxed);
        break;
      }
    }
    leave();
  }

  // Waits until the word differs from `seen`: first spinning, taking over a chunk where that lasts long, then asleep.
  void await_change(const Worked& worked, int thread, Parking& parking) {
    const auto changed = [&] {
      return word.load(std::memory_order_seq_cst) != worked.seen || stopping.load(std::memory_order_seq_cst);
    };
    const bool may_help = !ended(worked.seen);
    const auto patience = std::max<std::chrono::steady_clock::duration>(kPatience, worked.chunk_time);
    const auto start = std::chrono::steady_clock::now();
    auto look_at = start + patience;
    const auto deadline = (may_help ? look_at : start) + kSpin;
    for (auto now = start; now < deadline; now = std::chrono::steady_clock::now()) {
      for (int i = 0; i < 16; ++i) {
        if (changed()) return;
        pause_briefly();
      }
      if (!may_help || now < look_at) continue;
      take_over(worked.seen, thread);
      look_at = std::chrono::steady_clock::now() + patience;
    }
    parking.park(changed);
  }

  // Waits until no thread reads the program any more.
  void await_leaving() {
    const auto left = [&] { return inside.load(std::memory_order_seq_cst) == 0; };
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    while (!left()) {
      pause_briefly();
      if (std::chrono::steady_clock::now() >= deadline) caller.park(left);
    }
  }

  void run_program(std::span<const Operation> operations) {
    program = operations;
    // One more than the last program's end, so that no word of an earlier program is ever seen again (until the
    // 32-bit sequence wraps, which a thread would have to sleep through exactly).
    first_sequence = sequence_of(word.load(std::memory_order_relaxed)) + 1;
    open(0);
    for (;;) {
      const Worked worked = work(0);
      if (ended(worked.seen)) break;
      await_change(worked, 0, caller);
    }
    await_leaving();
  }

  void run_worker(int thread) {
    const FloatMode mode;
    while (!stopping.load(std::memory_order_acquire)) {
      await_change(work(thread), thread, workers);
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

namespace {

void run_alone(std::span<const Operation> program) {
  for (const Operation& operation : program) {
    for (int64_t chunk = 0; chunk < operation.n_chunks; ++chunk) {
      operation.run(operation.arguments, chunk, 0);
      if (operation.publish != nullptr) operation.publish(operation.arguments, chunk, 0);
    }
  }
}

}  // namespace

void Pool::execute(std::span<const Operation> program) {
  if (program.empty()) return;
  impl_->turns.take();
  const FloatMode mode;
  if (impl_->n_threads == 1)
    run_alone(program);
  else
    impl_->run_program(program);
  impl_->turns.give();
}

int64_t Pool::chunks_taken_over() const {
  return impl_->taken_over.load(std::memory_order_relaxed);
}

}  // namespace vedette::ops::cpu
