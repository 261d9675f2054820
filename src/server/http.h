// HTTP as the rest of the server sees it: requests in, answers out. Boost stays behind this header (server/http/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vedette::server {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // as sent, upper case
  std::string target;  // as sent
  std::string path;    // percent-decoded, without query, --api-prefix and trailing slashes ("/" stays)
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  HeaderList headers;                                      // names in lower case, in order
  std::string body;                                        // decompressed
  std::string peer;                                        // "127.0.0.1:4711", "unix"
  bool prefixed = true;                                    // the target had --api-prefix (always true without one)

  const std::string* header(std::string_view lower_name) const;  // the first of that name
  const std::string* parameter(std::string_view name) const;     // of the query
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  HeaderList headers = {};
};

// The answer to one request. Thread-safe; handlers keep it as long as they answer. One of send() and begin_stream() is
// called, once; later ones are ignored, as is everything once the client is gone. Dropped unanswered, it answers 500;
// dropped within a stream, it cuts the connection. It may outlive the server.
//
// Callbacks must not block: they hold up all connections. They are let go with the answer, so they may own the
// responder. A client that ends its sending side (half-close) counts as gone.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void send(HttpResponse response) = 0;
  virtual void begin_stream(int status, std::string_view content_type, const HeaderList& headers) = 0;
  virtual void write(std::string chunk) = 0;  // after begin_stream; does not block
  virtual void end() = 0;
  // Bytes written and not yet taken by the kernel.
  virtual size_t unsent_bytes() const = 0;
  // Called once, on a thread of the transport, when the client is gone or has not read for the stall timeout; at once,
  // on the calling thread, if it already is. Never called after end() or send() has been carried out.
  virtual void on_closed(std::function<void()> callback) = 0;
  // Called each time unsent_bytes() falls to `bytes` or below after having been above; what was above and fell before
  // this call is not told.
  virtual void on_drained(size_t bytes, std::function<void()> callback) = 0;
};

struct HttpSettings {
  std::string host = "127.0.0.1";  // "*.sock": a Unix socket at that path, mode 0600
  uint16_t port = 8080;            // 0: chosen by the kernel
  bool reuse_port = false;
  std::string certificate_file, key_file;    // PEM; both or none
  size_t max_body_bytes = size_t{64} << 20;  // decompressed; beyond: 413
  size_t max_header_bytes = size_t{64} << 10;
  int header_timeout_ms = 10'000;  // from the first byte of a request to the end of its header
  int idle_timeout_ms = 60'000;    // between requests of a connection
  int io_timeout_ms = 3'600'000;   // one read or write; this and the other times: 0 or less is without limit
  int stall_timeout_ms = 30'000;   // a stream whose client reads nothing
  int threads = 2;                 // of handlers; connections have one more
  std::string api_prefix;          // "/llama"
};

// Runs on one of the server's handler threads; may take its time. An exception is answered 500. Not run for a client
// that went before its turn.
using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<Responder> responder)>;

// HTTP/1.1 with keep-alive, pipelining refused politely (requests of a connection are answered in turn), chunked
// streams, HEAD, gzip, deflate and zstd request bodies, TLS, Unix sockets. Malformed requests are answered 400, 408,
// 413, 414, 415, 417, 431, 501 or 505 in the OpenAI envelope, without a handler.
class HttpServer {
 public:
  // Errors: kUnavailable (address in use, or refused, with the address), kInvalidRequest (certificate, key).
  static Result<std::unique_ptr<HttpServer>> start(const HttpSettings& settings, HttpHandler handler);
  ~HttpServer();  // stop(0)

  uint16_t port() const;        // 0 on a Unix socket
  std::string address() const;  // "http://127.0.0.1:8080", "https://…", "unix:/path.sock"
  int64_t open_connections() const;
  // No new connections; idle ones close; answers under way have grace_ms, then are cut. Returns when all is quiet,
  // handlers included; not to be called by a handler or a callback.
  void stop(int grace_ms);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::server
