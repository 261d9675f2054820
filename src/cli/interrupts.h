// Ctrl-C as something to ask for, in place of a handler.
#pragma once

#include <cstdint>
#include <thread>

namespace vedette::cli {

// Blocks SIGINT in this thread and in those created after it, and counts it: the kernel keeps a signal once however
// often it is sent, so a thread of its own takes each as it comes. (Two within the same instant, as a terminal sends
// keys that were pasted, are one.) Make one before loading a model; main thread.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // SIGINT ends the process again
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // How many SIGINT came since the last call.
  int64_t take();
  // Readable when SIGINT was counted, for poll().
  int descriptor() const { return counted_; }

 private:
  void count_arrivals() const;

  int arriving_ = -1, counted_ = -1, stop_ = -1;
  std::thread counter_;
};

}  // namespace vedette::cli
