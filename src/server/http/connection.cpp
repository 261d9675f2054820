#include "server/http/connection.h"

#include <poll.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>

#include "base/log.h"
#include "server/http/answer.h"
#include "server/http/request_parser.h"

namespace vedette::server::transport {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

constexpr auto kDone = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBlock = size_t{16} << 10;
constexpr size_t kLargeBody = size_t{256} << 10;  // may take its handler long to read
constexpr auto kHangUpCheck = std::chrono::milliseconds(100);
// How long a closed connection still reads, so that the client sees the answer rather than a reset.
constexpr auto kLinger = std::chrono::milliseconds(1000);

TimePoint after(int timeout_ms) {
  return timeout_ms <= 0 ? TimePoint::max() : Clock::now() + std::chrono::milliseconds(timeout_ms);
}

// A flag that a coroutine can wait for.
class Event {
 public:
  explicit Event(asio::io_context& io) : timer_(io) {}

  void notify() {
    set_ = true;
    timer_.cancel();
  }

  // False: the deadline came first.
  awaitable<bool> wait_until(TimePoint deadline) {
    if (!set_) {
      timer_.expires_at(deadline);
      co_await timer_.async_wait(kDone);
    }
    co_return std::exchange(set_, false);
  }

 private:
  asio::steady_timer timer_;
  bool set_ = false;
};

// Bytes in and out of a socket, plain or TLS: the one place where the two differ.
class Stream {
 public:
  Stream(asio::io_context& io, asio::ssl::context* tls, int fd, int family)
      : socket_(io, asio::generic::stream_protocol(family, 0), fd) {
    if (tls != nullptr) tls_.emplace(socket_, *tls);
  }

  bool is_tls() const { return tls_.has_value(); }

  awaitable<bool> handshake() {
    const auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::server, kDone);
    co_return !error;
  }

  // 0: the peer has closed, or the connection failed.
  awaitable<size_t> read_some(asio::mutable_buffer buffer) {
    if (tls_) {
      const auto [error, size] = co_await tls_->async_read_some(buffer, kDone);
      co_return error ? 0 : size;
    }
    const auto [error, size] = co_await socket_.async_read_some(buffer, kDone);
    co_return error ? 0 : size;
  }

  awaitable<size_t> write_some(asio::const_buffer buffer) {
    if (tls_) {
      const auto [error, size] = co_await tls_->async_write_some(buffer, kDone);
      co_return error ? 0 : size;
    }
    const auto [error, size] = co_await socket_.async_write_some(buffer, kDone);
    co_return error ? 0 : size;
  }

  // No more will be written. TLS: close_notify goes out first, so that the client can tell the end from a cut.
  awaitable<void> end_writing() {
    if (tls_) co_await tls_->async_shutdown(kDone);
    error_code ignored;
    ignored = socket_.shutdown(Socket::shutdown_send, ignored);
  }

  // The peer has closed its side, even though there are bytes left to read.
  bool peer_hung_up() {
    pollfd entry{socket_.native_handle(), POLLRDHUP, 0};
    return ::poll(&entry, 1, 0) != 0;
  }

  void close() {
    error_code ignored;
    ignored = socket_.close(ignored);
  }

 private:
  Socket socket_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
};

// Two coroutines: pump() reads all the time, so that a client's going is noticed whatever else happens; run() takes
// requests from what was read and carries out their answers in turn. A client that shuts down its sending side counts
// as gone. (Its end is not seen while more than most_input_bytes() of further requests lie in front of it; a reset is.)
// Whatever is pending holds the connection by shared_ptr; close() ends it all.
class ClientConnection final : public Connection, public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(asio::io_context& io, asio::ssl::context* tls, Shared& shared, int fd, int family, std::string peer)
      : io_(io),
        shared_(shared),
        stream_(io, tls, fd, family),
        peer_(std::move(peer)),
        input_event_(io),
        output_event_(io),
        room_event_(io),
        write_timer_(io),
        most_input_(most_input_bytes(shared.settings)) {
    shared_.connections.insert(this);
    ++shared_.open;
  }

  ~ClientConnection() override {
    shared_.connections.erase(this);
    const std::lock_guard lock(shared_.mutex);
    if (--shared_.open == 0) shared_.quiet.notify_all();
  }

  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  void start() {
    spawn([](const std::shared_ptr<ClientConnection>& self) { return self->run(); });
  }

  void drain() override {
    if (!answer_) cut();
  }

  void cut() override {
    if (closed_) return;
    closed_ = true;
    stream_.close();
    write_timer_.cancel();
    if (answer_) answer_->lose();
    input_event_.notify();
    output_event_.notify();
    room_event_.notify();
  }

 private:
  // An exception (memory) ends the connection, not the server.
  template <class Start>
  void spawn(Start start) {
    asio::co_spawn(
        io_, [self = shared_from_this(), start]() { return start(self); },
        [self = shared_from_this()](const std::exception_ptr& exception) {
          if (exception) self->cut();
        });
  }

  awaitable<void> run() {
    if (stream_.is_tls()) {
      write_deadline(shared_.settings.header_timeout_ms);
      writing_ = true;
      const bool agreed = co_await stream_.handshake();
      writing_ = false;
      if (!agreed) cut();
    }
    if (!closed_) {
      spawn([](const std::shared_ptr<ClientConnection>& self) { return self->pump(); });
      while (co_await serve_one()) {
      }
      co_await linger();
    }
    cut();
  }

  awaitable<void> pump() {
    while (!closed_) {
      if (unread() >= most_input_ && !discard_) {
        // Full of requests that wait for their turn.
        const TimePoint next = Clock::now() + kHangUpCheck;
        co_await room_event_.wait_until(next);
        if (!closed_ && unread() >= most_input_ && stream_.peer_hung_up()) break;
        continue;
      }
      const size_t size = co_await stream_.read_some(asio::buffer(block_));
      if (size == 0) break;
      if (discard_) continue;
      input_.append(block_.data(), size);
      input_event_.notify();
    }
    ended_ = true;
    if (answer_) cut();
    input_event_.notify();
  }

  size_t unread() const { return input_.size() - input_start_; }

  // Bytes move only once half of them are dropped, for there may be many small requests.
  void drop_input(size_t bytes) {
    input_start_ += bytes;
    if (input_start_ * 2 >= input_.size()) {
      input_.erase(0, input_start_);
      input_start_ = 0;
    }
    room_event_.notify();
  }

  // One request and its answer; false: the connection is to be closed.
  awaitable<bool> serve_one() {
    const HttpSettings& settings = shared_.settings;
    RequestParser parser(settings);
    auto step = RequestParser::Step::kNeedMore;
    TimePoint deadline = after(settings.idle_timeout_ms);
    bool header_begun = false, continued = false;
    while (true) {
      if (unread() > 0) {
        size_t consumed = 0;
        step = parser.feed(std::string_view(input_).substr(input_start_), consumed);
        drop_input(consumed);
      }
      if (step != RequestParser::Step::kNeedMore) break;
      if (ended_ || closed_ || (shared_.closing && !parser.started())) co_return false;
      if (parser.has_header()) {
        if (parser.expects_continue() && !continued && unread() == 0) {
          continued = true;
          const std::string line = "HTTP/1.1 100 Continue\r\n\r\n";
          if (!co_await write_all(line)) co_return false;
        }
        deadline = after(settings.io_timeout_ms);
      } else if (parser.started() && !header_begun) {
        header_begun = true;
        deadline = after(settings.header_timeout_ms);
      }
      if (co_await input_event_.wait_until(deadline) || closed_) continue;
      if (!parser.started()) {
        cut();
        co_return false;
      }
      const Problem late{408, "the request did not arrive in time"};
      co_await refuse(late, parser.form());
      co_return false;
    }
    if (step == RequestParser::Step::kProblem) {
      co_await refuse(parser.problem(), parser.form());
      co_return false;
    }
    dispatch(parser);
    const bool keep = co_await carry_out();
    answer_.reset();
    co_return keep && !shared_.closing;
  }

  void dispatch(RequestParser& parser) {
    answer_ = std::make_shared<Answer>(parser.form(), shared_.closing, [self = shared_from_this()] {
      asio::post(self->io_, [self] { self->output_event_.notify(); });
    });
    auto request = std::make_shared<HttpRequest>(parser.take());
    request->peer = peer_;
    const bool large = request->body.size() > kLargeBody;
    auto task = [&shared = shared_, request, answer = answer_, responder = make_responder(answer_)] {
      if (answer->is_lost()) return;
      try {
        shared.handler(std::move(*request), responder);
      } catch (const std::exception& exception) {
        log::warning("http: a handler failed: {}", exception.what());
        answer->fail(std::string("internal error: ") + exception.what());
      } catch (...) {
        answer->fail("internal error");
      }
    };
    shared_.pool.post(std::move(task), large);
    if (ended_) cut();
  }

  // Writes the answer as it comes; false: the connection is to be closed.
  awaitable<bool> carry_out() {
    const std::shared_ptr<Answer> answer = answer_;
    std::string bytes;
    while (!closed_) {
      const Answer::Take take = answer->take(bytes);
      if (take == Answer::Take::kCut) break;
      if (take == Answer::Take::kComplete) {
        answer->finish();
        co_return answer->keep_alive();
      }
      if (take == Answer::Take::kWait) {
        co_await output_event_.wait_until(TimePoint::max());
        continue;
      }
      const HttpSettings& settings = shared_.settings;
      const bool stalls = answer->is_stream() && settings.stall_timeout_ms > 0;
      if (!co_await write_all(bytes, stalls ? settings.stall_timeout_ms : settings.io_timeout_ms, answer.get())) break;
    }
    cut();
    co_return false;
  }

  awaitable<void> refuse(const Problem& problem, AnswerForm form) {
    form.keep_alive = false;
    const HttpResponse response = problem_response(problem);
    std::string bytes = format_head(response.status, response.content_type, {}, response.body.size(), form);
    if (!form.head) bytes += response.body;
    discard_ = true;
    drop_input(unread());
    co_await write_all(bytes);
  }

  awaitable<bool> write_all(const std::string& bytes) {
    return write_all(bytes, shared_.settings.stall_timeout_ms, nullptr);
  }

  awaitable<bool> write_all(const std::string& bytes, int timeout_ms, Answer* answer) {
    size_t done = 0;
    while (done < bytes.size() && !closed_) {
      write_deadline(timeout_ms);
      writing_ = true;
      const size_t size = co_await stream_.write_some(asio::buffer(bytes.data() + done, bytes.size() - done));
      writing_ = false;
      if (size == 0) co_return false;
      done += size;
      if (answer != nullptr) answer->sent(size);
    }
    co_return !closed_;
  }

  // The timer is armed once and looks at the deadline when it fires, for deadlines move with each write.
  void write_deadline(int timeout_ms) {
    write_deadline_ = after(timeout_ms);
    if (write_deadline_ == TimePoint::max()) return;
    if (!write_timer_armed_ || write_timer_.expiry() > write_deadline_) arm_write_timer();
  }

  void arm_write_timer() {
    write_timer_armed_ = true;
    write_timer_.expires_at(write_deadline_);
    write_timer_.async_wait([self = shared_from_this()](error_code error) {
      if (error || self->closed_) return;
      self->write_timer_armed_ = false;
      if (!self->writing_) return;
      if (Clock::now() >= self->write_deadline_)
        self->cut();
      else
        self->arm_write_timer();
    });
  }

  // Ends the sending side and reads on for a moment: a close with unread bytes would reset the connection, and the
  // client could lose the answer.
  awaitable<void> linger() {
    if (closed_) co_return;
    discard_ = true;
    drop_input(unread());
    const TimePoint until = Clock::now() + kLinger;
    write_timer_.expires_at(until);
    write_timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->cut();
    });
    co_await stream_.end_writing();
    while (!ended_ && !closed_ && Clock::now() < until) co_await input_event_.wait_until(until);
  }

  asio::io_context& io_;
  Shared& shared_;
  Stream stream_;
  const std::string peer_;
  std::array<char, kReadBlock> block_;
  std::string input_;  // read; taken up to input_start_
  size_t input_start_ = 0;
  Event input_event_, output_event_, room_event_;
  asio::steady_timer write_timer_;
  TimePoint write_deadline_;
  const size_t most_input_;
  bool write_timer_armed_ = false, writing_ = false;
  bool discard_ = false;  // what is read is dropped
  bool ended_ = false;    // nothing more will be read
  bool closed_ = false;
  std::shared_ptr<Answer> answer_;  // under way
};

}  // namespace

void open_connection(asio::io_context& io, asio::ssl::context* tls, Shared& shared, int fd, int family,
                     std::string peer) {
  std::make_shared<ClientConnection>(io, tls, shared, fd, family, std::move(peer))->start();
}

}  // namespace vedette::server::transport
