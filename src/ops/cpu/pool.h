// The leaderless pool: threads run a recorded program of operations, each cut into chunks.
//
// Whichever thread finds an operation's chunks done opens the next; no thread is a leader whose lost time slice would
// stop the others. One pool per process, shared by all models; a program runs at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace vedette::ops::cpu {

// One operation: run(arguments, chunk, thread) for chunk in [0, n_chunks), in any order, on any thread.
// Chunks of operation i+1 start after every chunk of operation i is done.
struct Operation {
  void (*run)(const void* arguments, int64_t chunk, int thread) = nullptr;
  const void* arguments = nullptr;
  int64_t n_chunks = 1;
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
  // Runs the program and returns when its last chunk is done. One caller at a time (others wait).
  void execute(std::span<const Operation> program);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::ops::cpu
