// The leaderless pool: threads run a recorded program of operations, each cut into chunks.
//
// Whichever thread finds an operation's chunks done opens the next; no thread is a leader whose lost time slice would
// stop the others. A chunk whose thread lost its time slice is run again by one that has nothing to do, where the
// operation allows it: the first to finish publishes its result, the other's is dropped. One pool per process, shared
// by all models; a program runs at a time, in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace vedette::ops::cpu {

// One operation: run(arguments, chunk, thread) for chunk in [0, n_chunks), in any order, on any thread.
// Chunks of operation i+1 start after every chunk of operation i is done.
//
// With publish, run() must leave its result with the thread (scratch by thread number) and publish(arguments, chunk,
// thread) puts it in place: then a second thread may run a chunk that is not done, even while others are far ahead and
// overwrite what it reads. So run() must be harmless on any values, and only pointers and sizes in `arguments` count
// on.
struct Operation {
  void (*run)(const void* arguments, int64_t chunk, int thread) = nullptr;
  const void* arguments = nullptr;
  int64_t n_chunks = 1;
  void (*publish)(const void* arguments, int64_t chunk, int thread) = nullptr;
};

class Pool {
 public:
  // threads: workers, the caller of execute() included. Threads spin briefly between operations, then park.
  // Each sets its floating-point mode (round to nearest, denormals kept) for the numerical contract.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const;
  // Runs the program and returns when its last chunk is done and no thread reads it any more. One caller at a time;
  // others wait for their turn.
  void execute(std::span<const Operation> program);
  // Chunks that a second thread ran and published, since the start.
  int64_t chunks_taken_over() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::ops::cpu
