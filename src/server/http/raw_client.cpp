#include "server/http/raw_client.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace vedette::server::transport {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

void parse_head(std::string_view head, Reply& reply) {
  reply.status = head.size() > 12 ? std::atoi(std::string(head.substr(9, 3)).c_str()) : 0;
  size_t at = head.find("\r\n");
  while (at != std::string_view::npos && at + 2 < head.size()) {
    const size_t end = std::min(head.find("\r\n", at + 2), head.size());
    const std::string_view line = head.substr(at + 2, end - at - 2);
    if (const size_t colon = line.find(": "); colon != std::string_view::npos)
      reply.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
    at = end == head.size() ? std::string_view::npos : end;
  }
}

}  // namespace

RawClient::RawClient(uint16_t port, int receive_buffer, const char* address) {
  const bool v6 = std::strchr(address, ':') != nullptr;
  fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  sockaddr_in v4_address{};
  v4_address.sin_family = AF_INET;
  v4_address.sin_port = htons(port);
  sockaddr_in6 v6_address{};
  v6_address.sin6_family = AF_INET6;
  v6_address.sin6_port = htons(port);
  void* number = v6 ? static_cast<void*>(&v6_address.sin6_addr) : static_cast<void*>(&v4_address.sin_addr);
  ::inet_pton(v6 ? AF_INET6 : AF_INET, address, number);
  const auto* to = v6 ? reinterpret_cast<sockaddr*>(&v6_address) : reinterpret_cast<sockaddr*>(&v4_address);
  if (::connect(fd_, to, v6 ? sizeof v6_address : sizeof v4_address) != 0) close();
}

RawClient::RawClient(const std::string& unix_path) {
  fd_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, unix_path.data(), std::min(unix_path.size(), sizeof address.sun_path - 1));
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) close();
}

RawClient::~RawClient() {
  close();
}

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void RawClient::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

bool RawClient::fill() {
  pollfd entry{fd_, POLLIN, 0};
  if (::poll(&entry, 1, 5000) <= 0) return false;
  char block[16384];
  const ssize_t size = ::recv(fd_, block, sizeof block, 0);
  if (size <= 0) return false;
  buffer_.append(block, static_cast<size_t>(size));
  return true;
}

bool RawClient::read_until(std::string_view text) {
  while (buffer_.find(text) == std::string::npos)
    if (!fill()) return false;
  return true;
}

size_t RawClient::drop(size_t most) {
  size_t total = std::min(most, buffer_.size());
  buffer_.erase(0, total);
  std::string block(64 << 10, '\0');
  while (total < most) {
    pollfd entry{fd_, POLLIN, 0};
    if (::poll(&entry, 1, 5000) <= 0) break;
    const ssize_t size = ::recv(fd_, block.data(), std::min(block.size(), most - total), 0);
    if (size <= 0) break;
    total += static_cast<size_t>(size);
  }
  return total;
}

Reply RawClient::reply(bool head) {
  Reply out;
  if (!read_until("\r\n\r\n")) return out;
  const size_t end = buffer_.find("\r\n\r\n");
  parse_head(std::string_view(buffer_).substr(0, end), out);
  buffer_.erase(0, end + 4);
  if (head || out.status < 200 || out.status == 204 || out.status == 304) {
    out.complete = true;
  } else if (const auto length = out.headers.find("content-length"); length != out.headers.end()) {
    const auto size = static_cast<size_t>(std::stoull(length->second));
    while (buffer_.size() < size)
      if (!fill()) return out;
    out.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    out.complete = true;
  } else if (out.headers.contains("transfer-encoding")) {
    while (true) {
      if (!read_until("\r\n")) return out;
      const size_t line = buffer_.find("\r\n");
      const size_t size = std::stoull(buffer_.substr(0, line), nullptr, 16);
      while (buffer_.size() < line + 2 + size + 2)
        if (!fill()) return out;
      out.body += buffer_.substr(line + 2, size);
      buffer_.erase(0, line + 2 + size + 2);
      if (size == 0) break;
    }
    out.complete = true;
  } else {
    while (fill()) {
    }
    out.body = std::exchange(buffer_, {});
    out.complete = true;
  }
  return out;
}

bool RawClient::ends_within(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    pollfd entry{fd_, POLLIN, 0};
    if (::poll(&entry, 1, 10) <= 0) continue;
    if (!fill()) return true;
  }
  return false;
}

std::unique_ptr<HttpServer> start_server(HttpHandler handler, const HttpSettings& settings) {
  HttpSettings own = settings;
  if (!own.host.ends_with(".sock")) own.port = 0;
  auto server = HttpServer::start(own, std::move(handler));
  if (!server.ok()) {
    ADD_FAILURE() << server.error().message;
    return nullptr;
  }
  return std::move(server).value();
}

std::string get(std::string_view path, std::string_view more_headers) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, more_headers);
}

std::string post(std::string_view path, std::string_view body, std::string_view more_headers) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{}", path, body.size(),
                     more_headers, body);
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace vedette::server::transport
