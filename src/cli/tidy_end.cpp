#include "cli/tidy_end.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace vedette::cli {
namespace {

constexpr int kSignalExit = 128;  // as shells count
constexpr int kRemovals = 5;      // another thread may still be adding files to a folder

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

TidyEnd::TidyEnd() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  if (!is_ignored(SIGHUP)) sigaddset(&signals_, SIGHUP);  // nohup
  stop_ = eventfd(0, EFD_CLOEXEC);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  arriving_ = signalfd(-1, &signals_, SFD_NONBLOCK | SFD_CLOEXEC);
  if (stop_ >= 0 && arriving_ >= 0)
    waiting_ = std::thread([this] { wait(); });
  else
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);  // without descriptors they end the process
}

TidyEnd::~TidyEnd() {
  if (waiting_.joinable()) {
    const uint64_t one = 1;
    while (write(stop_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    waiting_.join();
  }
  for (const int descriptor : {arriving_, stop_})
    if (descriptor >= 0) close(descriptor);
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

void TidyEnd::set_unfinished(std::string path) {
  std::lock_guard lock(mutex_);
  unfinished_ = std::move(path);
}

void TidyEnd::wait() {
  pollfd ready[2] = {{arriving_, POLLIN, 0}, {stop_, POLLIN, 0}};
  for (;;) {
    if (poll(ready, 2, -1) < 0) {
      if (errno != EINTR) return;
      continue;
    }
    signalfd_siginfo arrived{};
    if (read(arriving_, &arrived, sizeof arrived) == static_cast<ssize_t>(sizeof arrived)) {
      std::lock_guard lock(mutex_);
      std::error_code error;
      for (int i = 0; i < kRemovals && !unfinished_.empty(); ++i) {
        std::filesystem::remove_all(unfinished_, error);
        if (!error) break;
      }
      std::_Exit(kSignalExit + static_cast<int>(arrived.ssi_signo));
    }
    if ((ready[1].revents & POLLIN) != 0) return;
  }
}

}  // namespace vedette::cli
