// A client for tests that sends exactly the bytes it is given.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "server/http.h"

namespace vedette::server::transport {

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool complete = false;  // false: the connection ended or nothing came for a while
};

// One connection over a blocking socket, each wait bounded by 5 s.
class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0, const char* address = "127.0.0.1");
  explicit RawClient(const std::string& unix_path);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool send(std::string_view bytes);
  // One reply; `head`: to a HEAD request, without a body.
  Reply reply(bool head = false);
  Reply ask(std::string_view bytes) { return send(bytes) ? reply() : Reply{}; }
  // Waits until the buffered bytes contain `text`.
  bool read_until(std::string_view text);
  const std::string& buffered() const { return buffer_; }
  // Reads and drops up to `most` bytes; returns how many.
  size_t drop(size_t most);
  // The server ends the connection within that time (bytes before it are kept).
  bool ends_within(std::chrono::milliseconds limit);
  void close();
  void reset();  // RST instead of FIN

 private:
  bool fill();  // one read; false at the end

  int fd_ = -1;
  std::string buffer_;
};

// A server on a free port of 127.0.0.1 with settings that tests can change before.
std::unique_ptr<HttpServer> start_server(HttpHandler handler, const HttpSettings& settings = {});
std::string get(std::string_view path, std::string_view more_headers = "");
std::string post(std::string_view path, std::string_view body, std::string_view more_headers = "");
// Waits up to `limit` for a condition that another thread makes true.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace vedette::server::transport
