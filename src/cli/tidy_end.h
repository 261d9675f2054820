// Ending on a signal without leaving a half-written file or folder behind.
#pragma once

#include <csignal>
#include <mutex>
#include <string>
#include <thread>

namespace vedette::cli {

// While it lives, SIGINT, SIGTERM and SIGHUP remove what was named and end the process at once, with the exit code that
// shells report (128 + signal). Make one before other threads are started, which must not get these signals; main
// thread.
class TidyEnd {
 public:
  TidyEnd();
  ~TidyEnd();
  TidyEnd(const TidyEnd&) = delete;
  TidyEnd& operator=(const TidyEnd&) = delete;

  // A file or folder that the process is writing; "" once it is whole.
  void set_unfinished(std::string path);

 private:
  void wait();

  sigset_t signals_{};
  int arriving_ = -1, stop_ = -1;
  std::mutex mutex_;  // held while the process ends, so nothing new is begun
  std::string unfinished_;
  std::thread waiting_;
};

}  // namespace vedette::cli
