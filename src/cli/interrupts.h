// Ctrl-C as something to ask for, in place of a handler.
#pragma once

namespace vedette::cli {

// Blocks SIGINT in this thread and in those created after it, and collects it. Make one before loading a model;
// main thread.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // SIGINT ends the process again
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether SIGINT came since the last call.
  bool take();
  // Readable when SIGINT is pending, for poll().
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace vedette::cli
