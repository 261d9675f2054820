// The server: transport, gate and routes over one core.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "server/core.h"

namespace vedette::server {

class Server {
 public:
  // Listens at once; models are loaded through core().models.
  static Result<std::unique_ptr<Server>> start(ServerSettings settings);
  ~Server();

  ServerCore& core();
  std::string address() const;
  uint16_t port() const;
  // No new requests; answers under way have grace_ms.
  void stop(int grace_ms);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::server
