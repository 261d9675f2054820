#include "server/http/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace vedette::server::transport {
namespace {

constexpr int kBacklog = 1024;
constexpr mode_t kSocketFileMode = 0600;
constexpr int kUnsentInKernel = 128 << 10;

// An address of either family, as the socket calls want it.
union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_un local;
};

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

std::string text_of(const char* what, const std::string& where) {
  return fmt::format("{} {}: {}", what, where, std::strerror(errno));
}

uint16_t bound_port(int fd) {
  Address address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, &address.any, &size) != 0) return 0;
  return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

bool somebody_listens(const sockaddr_un& address) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return true;
  const bool refused =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == ECONNREFUSED;
  ::close(fd);
  return !refused;
}

// A socket bound and listening at one address; -1 with errno.
int listen_at(const addrinfo& entry, bool reuse_port, uint16_t port) {
  Address address{};
  std::memcpy(&address, entry.ai_addr, std::min<size_t>(entry.ai_addrlen, sizeof address));
  (entry.ai_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port) = htons(port);
  const int fd = ::socket(entry.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (reuse_port) set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  // "::" takes clients of both families.
  if (entry.ai_family == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd, &address.any, entry.ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(const HttpSettings& settings) {
  std::unique_ptr<Listener> listener(new Listener());
  const bool local = settings.host.ends_with(".sock");
  VEDETTE_RETURN_IF_ERROR(local ? listener->open_unix(settings.host) : listener->open_tcp(settings));
  return listener;
}

Listener::~Listener() {
  for (const Entry& entry : entries_) ::close(entry.fd);
  remove_file();
}

std::vector<Listener::Entry> Listener::take_sockets() {
  return std::exchange(entries_, {});
}

std::string Listener::address(bool tls) const {
  if (!path_.empty()) return "unix:" + path_;
  const bool v6 = host_.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", v6 ? "[" : "", host_, v6 ? "]" : "", port_);
}

void Listener::remove_file() {
  struct stat status{};
  if (path_.empty() || inode_ == 0 || ::lstat(path_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) ::unlink(path_.c_str());
  inode_ = 0;
}

Status Listener::open_unix(const std::string& path) {
  Address address{};
  address.local.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.local.sun_path)
    return invalid_request("--host", "the path of a Unix socket has at most {} bytes, '{}' has {}",
                           sizeof address.local.sun_path - 1, path, path.size());
  std::memcpy(address.local.sun_path, path.data(), path.size());
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) return unavailable("--host", "{}: a file that is no socket is there", path);
    if (somebody_listens(address.local)) return unavailable("--host", "{}: another server listens there", path);
    ::unlink(path.c_str());
  }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return unavailable("--host", "{}", text_of("cannot listen on", path));
  entries_.push_back({fd, AF_UNIX});
  if (::bind(fd, &address.any, sizeof address.local) != 0)
    return unavailable("--host", "{}", text_of("cannot listen on", path));
  // Nobody can connect before listen(), so the mode is set in time.
  const bool known = ::lstat(path.c_str(), &status) == 0;
  path_ = path;
  device_ = known ? status.st_dev : 0;
  inode_ = known ? status.st_ino : 0;
  if (::chmod(path.c_str(), kSocketFileMode) != 0 || ::listen(fd, kBacklog) != 0)
    return unavailable("--host", "{}", text_of("cannot listen on", path));
  return ok_status();
}

Status Listener::open_tcp(const HttpSettings& settings) {
  host_ = settings.host;
  if (host_.starts_with('[') && host_.ends_with(']')) host_ = host_.substr(1, host_.size() - 2);
  if (host_.empty()) return invalid_request("--host", "expected a host name or address, found an empty text");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host_.c_str(), "0", &hints, &found); code != 0)
    return unavailable("--host", "cannot find the address of '{}': {}", host_, ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  port_ = settings.port;
  int error = 0;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const int fd = listen_at(*entry, settings.reuse_port, port_);
    if (fd >= 0) {
      entries_.push_back({fd, entry->ai_family});
      port_ = bound_port(fd);
      continue;
    }
    // A name may have addresses of a family that this machine does not have ("localhost" without IPv6).
    if (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL) error = errno;
    if (entries_.empty() && entry->ai_next == nullptr) error = errno;
  }
  if (error == 0) return ok_status();
  const char* advice = error == EADDRINUSE ? "; another program listens there: choose another --port" : "";
  return unavailable("--port", "cannot listen on {} port {}: {}{}", host_, settings.port, std::strerror(error), advice);
}

std::string peer_name(int fd) {
  Address address{};
  socklen_t size = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getpeername(fd, &address.any, &size) != 0) return "unknown";
  if (address.any.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &address.v4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(address.v4.sin_port));
  }
  if (address.any.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &address.v6.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(address.v6.sin6_port));
  }
  return "unix";
}

void tune_connection(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentInKernel);
}

}  // namespace vedette::server::transport
