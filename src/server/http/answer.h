// One answer on its way from a handler to its connection.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/http.h"
#include "server/http/wire.h"

namespace vedette::server::transport {

// Shared by the connection (io thread) and the handler's side (any thread); one lock, never held while a callback runs.
class Answer {
 public:
  // `closing` is the server's: once set, new heads say "Connection: close". `wake` tells the connection that there is
  // something to take; called under the lock, it only posts.
  Answer(AnswerForm form, const std::atomic<bool>& closing, std::function<void()> wake)
      : form_(form), closing_(&closing), wake_(std::move(wake)) {}

  // The handler's side, as Responder has it.
  void send(const HttpResponse& response);
  void begin_stream(int status, std::string_view content_type, const HeaderList& headers);
  void write(std::string_view chunk);
  void end();
  size_t unsent_bytes() const;
  void on_closed(std::function<void()> callback);
  void on_drained(size_t bytes, std::function<void()> callback);
  // The handler failed: 500 if nothing was begun, else the stream is cut.
  void fail(const std::string& message);
  // Nobody can answer any more: as fail(), unless the answer is complete.
  void abandon();

  // The connection's side.
  enum class Take { kBytes, kWait, kComplete, kCut };
  // kBytes: `out` holds what is to be sent next. kComplete: all was taken before.
  Take take(std::string& out);
  void sent(size_t bytes);  // the kernel took them
  void finish();            // carried out: no callback comes after this
  void lose();              // the client is gone
  bool is_lost() const;
  bool is_stream() const;
  bool keep_alive() const;  // after the head was made

 private:
  enum class State { kNew, kStreaming, kEnded, kCut };
  struct Watcher {
    size_t bytes;
    bool above;
    std::function<void()> callback;
  };

  // All with the lock held.
  void make_head(int status, std::string_view content_type, const HeaderList& headers, std::optional<size_t> length);
  void queue_changed();
  void wake_connection();
  void send_locked(const HttpResponse& response);

  mutable std::mutex mutex_;
  AnswerForm form_;
  const std::atomic<bool>* closing_;
  std::function<void()> wake_;
  State state_ = State::kNew;
  bool stream_ = false, body_allowed_ = true;
  bool woken_ = false;                    // the connection will take() without being told again
  bool lost_ = false, finished_ = false;  // at most one
  std::string pending_;
  size_t counted_ = 0;  // of pending_, in unsent_
  size_t unsent_ = 0;
  std::vector<std::function<void()>> closed_;
  std::vector<Watcher> watchers_;
};

// What handlers hold. Dropped unanswered, it answers 500; dropped in a stream, it cuts the connection.
std::shared_ptr<Responder> make_responder(std::shared_ptr<Answer> answer);

}  // namespace vedette::server::transport
