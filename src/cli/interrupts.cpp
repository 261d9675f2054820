#include "cli/interrupts.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace vedette::cli {
namespace {

sigset_t interrupt_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

void add(int descriptor, uint64_t count) {
  while (write(descriptor, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = interrupt_set();
  counted_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  arriving_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (counted_ >= 0 && stop_ >= 0 && arriving_ >= 0) {
    counter_ = std::thread([this] { count_arrivals(); });
    return;
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // without descriptors it ends the process
}

Interrupts::~Interrupts() {
  const sigset_t set = interrupt_set();
  if (counter_.joinable()) {
    add(stop_, 1);
    counter_.join();
  }
  signalfd_siginfo pending{};
  while (arriving_ >= 0 && read(arriving_, &pending, sizeof pending) > 0) {
  }
  for (const int descriptor : {arriving_, counted_, stop_})
    if (descriptor >= 0) close(descriptor);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interrupts::count_arrivals() const {
  pollfd ready[2] = {{arriving_, POLLIN, 0}, {stop_, POLLIN, 0}};
  for (;;) {
    if (poll(ready, 2, -1) < 0) {
      if (errno != EINTR) return;
      continue;
    }
    signalfd_siginfo arrived{};
    while (read(arriving_, &arrived, sizeof arrived) == static_cast<ssize_t>(sizeof arrived)) add(counted_, 1);
    if ((ready[1].revents & POLLIN) != 0) return;
  }
}

int64_t Interrupts::take() {
  uint64_t count = 0;
  if (counted_ < 0 || read(counted_, &count, sizeof count) != static_cast<ssize_t>(sizeof count)) return 0;
  return static_cast<int64_t>(count);
}

}  // namespace vedette::cli
