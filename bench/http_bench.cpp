// The cost of the transport alone: a handler that does nothing.
//   http_bench PORT [HANDLER_THREADS]     then: wrk -c64 -t2 -d5 http://127.0.0.1:PORT/
// "/" answers 16 bytes, "/stream" 64 chunks of 32 bytes; it ends with its standard input.
#include <cstdio>
#include <cstdlib>

#include "server/http.h"

int main(int argc, char** argv) {
  using namespace vedette::server;
  HttpSettings settings;
  settings.port = static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080);
  if (argc > 2) settings.threads = std::atoi(argv[2]);
  auto server =
      HttpServer::start(settings, [](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
        if (request.path != "/stream") {
          responder->send({.body = "{\"status\":\"ok\"}\n"});
          return;
        }
        responder->begin_stream(200, "text/event-stream", {});
        for (int i = 0; i < 64; ++i) responder->write("data: 0123456789 0123456789 01\n\n");
        responder->end();
      });
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", (*server)->address().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  (*server)->stop(1000);
  return 0;
}
