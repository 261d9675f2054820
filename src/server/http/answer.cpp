#include "server/http/answer.h"

#include <fmt/core.h>

#include <exception>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "server/http/problem.h"

namespace vedette::server::transport {
namespace {

void call(const std::function<void()>& callback) {
  try {
    callback();
  } catch (const std::exception& exception) {
    log::warning("http: a callback of an answer failed: {}", exception.what());
  }
}

class Handle final : public Responder {
 public:
  explicit Handle(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  ~Handle() override { answer_->abandon(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void send(HttpResponse response) override { answer_->send(response); }
  void begin_stream(int status, std::string_view content_type, const HeaderList& headers) override {
    answer_->begin_stream(status, content_type, headers);
  }
  void write(std::string chunk) override { answer_->write(chunk); }
  void end() override { answer_->end(); }
  size_t unsent_bytes() const override { return answer_->unsent_bytes(); }
  void on_closed(std::function<void()> callback) override { answer_->on_closed(std::move(callback)); }
  void on_drained(size_t bytes, std::function<void()> callback) override {
    answer_->on_drained(bytes, std::move(callback));
  }

 private:
  std::shared_ptr<Answer> answer_;
};

}  // namespace

std::shared_ptr<Responder> make_responder(std::shared_ptr<Answer> answer) {
  return std::make_shared<Handle>(std::move(answer));
}

void Answer::send(const HttpResponse& response) {
  const std::lock_guard lock(mutex_);
  send_locked(response);
}

void Answer::send_locked(const HttpResponse& response) {
  if (lost_ || state_ != State::kNew) return;
  make_head(response.status, response.content_type, response.headers, response.body.size());
  if (body_allowed_) pending_ += response.body;
  state_ = State::kEnded;
  queue_changed();
}

void Answer::begin_stream(int status, std::string_view content_type, const HeaderList& headers) {
  const std::lock_guard lock(mutex_);
  if (lost_ || state_ != State::kNew) return;
  stream_ = true;
  if (form_.http_1_0) form_.keep_alive = false;
  make_head(status, content_type, headers, {});
  state_ = State::kStreaming;
  queue_changed();
}

void Answer::write(std::string_view chunk) {
  const std::lock_guard lock(mutex_);
  if (lost_ || state_ != State::kStreaming || chunk.empty() || !body_allowed_) return;
  if (form_.http_1_0) {
    pending_.append(chunk);
  } else {
    fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", chunk.size());
    pending_.append(chunk).append("\r\n");
  }
  queue_changed();
}

void Answer::end() {
  const std::lock_guard lock(mutex_);
  if (lost_ || state_ != State::kStreaming) return;
  if (body_allowed_ && !form_.http_1_0) pending_ += "0\r\n\r\n";
  state_ = State::kEnded;
  queue_changed();
}

void Answer::fail(const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (lost_ || state_ == State::kEnded || state_ == State::kCut) return;
  if (state_ == State::kNew) {
    send_locked(problem_response({500, message}));
    return;
  }
  state_ = State::kCut;
  wake_connection();
}

void Answer::abandon() {
  fail("internal error: the handler gave no answer");
}

size_t Answer::unsent_bytes() const {
  const std::lock_guard lock(mutex_);
  return unsent_;
}

void Answer::on_closed(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    if (!lost_) {
      closed_.push_back(std::move(callback));
      return;
    }
  }
  call(callback);
}

void Answer::on_drained(size_t bytes, std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (lost_ || finished_) return;
  watchers_.push_back({bytes, unsent_ > bytes, std::move(callback)});
}

Answer::Take Answer::take(std::string& out) {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  if (lost_ || state_ == State::kCut) return Take::kCut;
  if (!pending_.empty()) {
    out.clear();
    std::swap(out, pending_);
    counted_ = 0;
    return Take::kBytes;
  }
  if (state_ == State::kEnded) return Take::kComplete;
  woken_ = false;
  return Take::kWait;
}

void Answer::sent(size_t bytes) {
  std::vector<std::function<void()>> due;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return;
    unsent_ -= bytes;
    for (Watcher& watcher : watchers_) {
      if (!watcher.above || unsent_ > watcher.bytes) continue;
      watcher.above = false;
      due.push_back(watcher.callback);
    }
  }
  for (const auto& callback : due) call(callback);
}

void Answer::finish() {
  // Callbacks may own this answer's handle.
  std::vector<std::function<void()>> closed;
  std::vector<Watcher> watchers;
  const std::lock_guard lock(mutex_);  // released before the two above are destroyed
  if (lost_) return;
  finished_ = true;
  wake_ = nullptr;
  closed.swap(closed_);
  watchers.swap(watchers_);
}

void Answer::lose() {
  std::vector<std::function<void()>> closed;
  std::vector<Watcher> watchers;
  std::string unsent;
  {
    const std::lock_guard lock(mutex_);
    if (lost_ || finished_) return;
    lost_ = true;
    wake_ = nullptr;
    unsent_ = counted_ = 0;
    unsent.swap(pending_);
    closed.swap(closed_);
    watchers.swap(watchers_);
  }
  for (const auto& callback : closed) call(callback);
}

bool Answer::is_lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

bool Answer::is_stream() const {
  const std::lock_guard lock(mutex_);
  return stream_;
}

bool Answer::keep_alive() const {
  const std::lock_guard lock(mutex_);
  return form_.keep_alive;
}

void Answer::make_head(int status, std::string_view content_type, const HeaderList& headers,
                       std::optional<size_t> length) {
  if (closing_->load()) form_.keep_alive = false;
  pending_ = format_head(status, content_type, headers, length, form_);
  body_allowed_ = !form_.head && status_has_body(status);
}

void Answer::queue_changed() {
  // `pending_` only grew since it was last counted; what was swapped out of it is counted until sent().
  unsent_ += pending_.size() - std::exchange(counted_, pending_.size());
  for (Watcher& watcher : watchers_) watcher.above = watcher.above || unsent_ > watcher.bytes;
  wake_connection();
}

void Answer::wake_connection() {
  if (woken_ || !wake_) return;
  woken_ = true;
  wake_();
}

}  // namespace vedette::server::transport
