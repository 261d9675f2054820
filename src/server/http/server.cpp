#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "server/http.h"
#include "server/http/connection.h"
#include "server/http/listener.h"

namespace vedette::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

constexpr auto kDone = asio::as_tuple(asio::use_awaitable);
// After a failed accept (no descriptors left, mostly).
constexpr auto kAcceptPause = std::chrono::milliseconds(50);

Status load_certificate(asio::ssl::context& context, const HttpSettings& settings) {
  using Context = asio::ssl::context;
  if (settings.certificate_file.empty() || settings.key_file.empty())
    return invalid_request("--ssl-cert-file", "TLS needs both a certificate and a key file, only {} is given",
                           settings.key_file.empty() ? "the certificate" : "the key");
  error_code error;
  error = context.set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 | Context::no_tlsv1 |
                                  Context::no_tlsv1_1 | Context::no_compression,
                              error);
  error = context.use_certificate_chain_file(settings.certificate_file, error);
  if (error)
    return invalid_request("--ssl-cert-file", "{}: expected a PEM certificate chain: {}", settings.certificate_file,
                           error.message());
  error = context.use_private_key_file(settings.key_file, Context::pem, error);
  if (error)
    return invalid_request("--ssl-key-file", "{}: expected the PEM key of {}: {}", settings.key_file,
                           settings.certificate_file, error.message());
  return ok_status();
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpSettings& settings, HttpHandler handler) : shared(settings, std::move(handler)) {}

  void run() {
    while (true) {
      try {
        io.run();
        return;
      } catch (const std::exception& exception) {
        log::warning("http: an operation of a connection failed: {}", exception.what());
      }
    }
  }

  asio::awaitable<void> accept(Acceptor& acceptor, int family) {
    asio::steady_timer pause(io);
    while (acceptor.is_open()) {
      auto [error, socket] = co_await acceptor.async_accept(kDone);
      if (!acceptor.is_open()) co_return;
      if (error) {
        if (error == asio::error::connection_aborted) continue;
        pause.expires_after(kAcceptPause);
        co_await pause.async_wait(kDone);
        continue;
      }
      error_code released;
      const int fd = socket.release(released);
      if (released) continue;
      if (family != AF_UNIX) transport::tune_connection(fd);
      transport::open_connection(io, tls ? &*tls : nullptr, shared, fd, family, transport::peer_name(fd));
    }
  }

  void begin_stop() {
    for (Acceptor& acceptor : acceptors) {
      error_code ignored;
      ignored = acceptor.close(ignored);
    }
    for_each_connection([](transport::Connection& connection) { connection.drain(); });
  }

  // Closing may end a connection, which leaves the set.
  template <class Act>
  void for_each_connection(Act act) {
    const std::vector<transport::Connection*> all(shared.connections.begin(), shared.connections.end());
    for (transport::Connection* connection : all)
      if (shared.connections.contains(connection)) act(*connection);
  }

  void stop(int grace_ms) {
    const std::lock_guard stopping(stop_mutex);
    if (!thread.joinable()) return;
    shared.closing = true;
    asio::post(io, [this] { begin_stop(); });
    {
      std::unique_lock lock(shared.mutex);
      shared.quiet.wait_for(lock, std::chrono::milliseconds(std::max(grace_ms, 0)),
                            [this] { return shared.open == 0; });
    }
    asio::post(io, [this] {
      for_each_connection([](transport::Connection& connection) { connection.cut(); });
      work.reset();
    });
    thread.join();
    shared.pool.stop();
    listener->remove_file();
  }

  transport::Shared shared;
  std::unique_ptr<transport::Listener> listener;
  asio::io_context io{1};
  std::optional<asio::ssl::context> tls;
  std::vector<Acceptor> acceptors;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::mutex stop_mutex;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop(0);
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpSettings& settings, HttpHandler handler) {
  auto impl = std::make_unique<Impl>(settings, std::move(handler));
  if (!settings.certificate_file.empty() || !settings.key_file.empty()) {
    impl->tls.emplace(asio::ssl::context::tls_server);
    VEDETTE_RETURN_IF_ERROR(load_certificate(*impl->tls, settings));
  }
  VEDETTE_ASSIGN_OR_RETURN(impl->listener, transport::Listener::open(settings));
  const std::vector<transport::Listener::Entry> entries = impl->listener->take_sockets();
  impl->acceptors.reserve(entries.size());
  for (const auto& entry : entries)
    impl->acceptors.emplace_back(impl->io, asio::generic::stream_protocol(entry.family, 0), entry.fd);
  for (size_t i = 0; i < entries.size(); ++i)
    asio::co_spawn(impl->io, impl->accept(impl->acceptors[i], entries[i].family), asio::detached);
  impl->thread = std::thread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const {
  return impl_->listener->port();
}

std::string HttpServer::address() const {
  return impl_->listener->address(impl_->tls.has_value());
}

int64_t HttpServer::open_connections() const {
  return impl_->shared.open.load();
}

void HttpServer::stop(int grace_ms) {
  impl_->stop(grace_ms);
}

}  // namespace vedette::server
