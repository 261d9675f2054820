#include "cli/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace vedette::cli {
namespace {

sigset_t interrupt_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = interrupt_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

Interrupts::~Interrupts() {
  const sigset_t set = interrupt_set();
  if (descriptor_ >= 0) {
    take();
    close(descriptor_);
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool Interrupts::take() {
  if (descriptor_ < 0) return false;
  bool any = false;
  signalfd_siginfo info{};
  while (read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) any = true;
  return any;
}

}  // namespace vedette::cli
