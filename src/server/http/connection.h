// One client's connection, from accept to close. Everything here happens on the io thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "server/http.h"
#include "server/http/handler_pool.h"

namespace boost::asio {
class io_context;
namespace ssl {
class context;
}
}  // namespace boost::asio

namespace vedette::server::transport {

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void drain() = 0;  // closes if no answer is under way, else after it
  virtual void cut() = 0;    // closes at once
};

// What all connections of a server share; outlives them.
struct Shared {
  Shared(const HttpSettings& settings_from, HttpHandler handler_from)
      : settings(settings_from), handler(std::move(handler_from)), pool(settings_from.threads) {}

  const HttpSettings settings;
  const HttpHandler handler;
  HandlerPool pool;
  std::atomic<bool> closing = false;
  std::unordered_set<Connection*> connections;  // io thread
  std::atomic<int64_t> open = 0;
  std::mutex mutex;               // of `quiet`
  std::condition_variable quiet;  // told when `open` falls to 0
};

// Takes over the accepted socket `fd` of that address family. `tls` is nullptr for plain connections.
void open_connection(boost::asio::io_context& io, boost::asio::ssl::context* tls, Shared& shared, int fd, int family,
                     std::string peer);

}  // namespace vedette::server::transport
