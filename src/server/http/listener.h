// Sockets that wait for clients: TCP on every address of a host name, or a Unix socket.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/http.h"

namespace vedette::server::transport {

// Owns the sockets until they are taken, and the file of a Unix socket until it is destroyed.
class Listener {
 public:
  struct Entry {
    int fd;
    int family;
  };

  // Unix sockets have mode 0600: the file's owner alone connects. A file left behind by a dead server is replaced, one
  // that somebody answers on, or that is no socket, is not.
  // Errors: kUnavailable (in use, not allowed, unknown host), kInvalidRequest (path too long).
  static Result<std::unique_ptr<Listener>> open(const HttpSettings& settings);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::vector<Entry> take_sockets();
  uint16_t port() const { return port_; }  // 0 on a Unix socket
  std::string address(bool tls) const;     // "http://127.0.0.1:8080", "unix:/path.sock"
  void remove_file();                      // of a Unix socket, if it is still ours

 private:
  Listener() = default;
  Status open_unix(const std::string& path);
  Status open_tcp(const HttpSettings& settings);

  std::vector<Entry> entries_;
  std::string host_, path_;
  uint16_t port_ = 0;
  uint64_t device_ = 0, inode_ = 0;  // of the socket's file
};

// Of an accepted connection: "127.0.0.1:4711", "[::1]:4711", "unix".
std::string peer_name(int fd);
// No delay for small writes, keep-alive probes, and little unsent data in the kernel, where nobody can count it.
void tune_connection(int fd);

}  // namespace vedette::server::transport
