#include "server/server.h"

#include <utility>

#include "base/error.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {
namespace {

// Puts the CORS headers of its request on every answer.
class CorsResponder final : public Responder {
 public:
  CorsResponder(std::shared_ptr<Responder> inner, HeaderList headers)
      : inner_(std::move(inner)), headers_(std::move(headers)) {}
  void send(HttpResponse response) override {
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    inner_->send(std::move(response));
  }
  void begin_stream(int status, std::string_view content_type, const HeaderList& headers) override {
    HeaderList all = headers;
    all.insert(all.end(), headers_.begin(), headers_.end());
    inner_->begin_stream(status, content_type, all);
  }
  void write(std::string chunk) override { inner_->write(std::move(chunk)); }
  void end() override { inner_->end(); }
  size_t unsent_bytes() const override { return inner_->unsent_bytes(); }
  void on_closed(std::function<void()> callback) override { inner_->on_closed(std::move(callback)); }
  void on_drained(size_t bytes, std::function<void()> callback) override {
    inner_->on_drained(bytes, std::move(callback));
  }

 private:
  std::shared_ptr<Responder> inner_;
  HeaderList headers_;
};

void refuse(const Dialect* dialect, int status, std::string message, const std::shared_ptr<Responder>& responder,
            const HeaderList& headers) {
  const Error error{ErrorKind::kInvalidRequest, std::move(message), ""};
  send_json(dialect != nullptr ? dialect->error_body(error, status) : openai_error(error, status), status, headers,
            responder);
}

void route(ServerCore& core, const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
  std::string allowed;
  auto found = find_route(request.method, request.path, &allowed);
  const Dialect* envelope = found.ok() ? found->route->envelope : nullptr;
  switch (pass_gate(request, core.settings.gate)) {
    case GateVerdict::kPreflight:
      return responder->send({.status = 204, .body = "", .content_type = "text/plain"});
    case GateVerdict::kForbiddenHost:
      return refuse(envelope, 403,
                    "the Host header names neither this machine's loopback nor an allowed host; add it with "
                    "--allowed-hosts",
                    responder, {});
    case GateVerdict::kUnauthorized:
      return refuse(envelope, 401, "invalid api key; send it as Authorization: Bearer KEY or x-api-key: KEY", responder,
                    {{"WWW-Authenticate", "Bearer"}});
    case GateVerdict::kPass:
      break;
  }
  const bool outside = !core.settings.http.api_prefix.empty() && !request.prefixed && !is_public(request);
  if (outside)
    return send_error(nullptr,
                      not_found("", "unknown route {}; paths begin with {}", request.path.substr(0, 200),
                                core.settings.http.api_prefix),
                      request, responder, {});
  if (!found.ok()) {
    if (allowed.empty()) return send_error(nullptr, found.error(), request, responder, {});
    return refuse(nullptr, 405, found.error().message, responder, {{"Allow", allowed}});
  }
  found->route->handle({core, request, responder, std::move(found->captures)});
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerSettings settings) : core(std::move(settings)) {}
  ServerCore core;
  std::unique_ptr<HttpServer> http;
  bool stopped = false;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop(0);
}

Result<std::unique_ptr<Server>> Server::start(ServerSettings settings) {
  auto impl = std::make_unique<Impl>(std::move(settings));
  ServerCore* core = &impl->core;
  auto handler = [core](HttpRequest request, std::shared_ptr<Responder> responder) {
    HeaderList cors = cors_headers(request, core->settings.gate);
    const std::shared_ptr<Responder> outer =
        cors.empty() ? std::move(responder) : std::make_shared<CorsResponder>(std::move(responder), std::move(cors));
    route(*core, request, outer);
  };
  VEDETTE_ASSIGN_OR_RETURN(impl->http, HttpServer::start(core->settings.http, std::move(handler)));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

ServerCore& Server::core() {
  return impl_->core;
}
std::string Server::address() const {
  return impl_->http->address();
}
uint16_t Server::port() const {
  return impl_->http->port();
}

void Server::stop(int grace_ms) {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->core.events->end_streams();  // watchers alone would use up the grace
  impl_->core.fetch.cancel(false);    // and so would a download, which goes on another time
  impl_->http->stop(grace_ms);
  impl_->core.jobs.abort_all(unavailable("", "the server is stopping"));
  constexpr int kUnloadMs = 10'000;
  impl_->core.models.unload(kUnloadMs);
}

}  // namespace vedette::server
