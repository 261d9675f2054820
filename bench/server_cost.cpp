// What the server costs over its engine: tokens per second of the same requests, submitted to the engine, and sent over
// loopback as streams. Interleaved in one process on one loaded model. The processor time of both is told too, which
// other programs on the machine disturb less; that of the server holds the reading clients.
//
//   server_cost MODEL [STREAMS [TOKENS [ROUNDS]]]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/server.h"

namespace {

using namespace vedette;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string prompt_of(int stream) {
  return "Stream " + std::to_string(stream) + ": once upon a time, in a small town by the sea,";
}

// Seconds until all streams have their tokens, straight from the engine.
double run_engine(engine::Engine& engine, int streams, int tokens) {
  std::mutex mutex;
  std::condition_variable finished;
  int open = streams;
  const auto start = Clock::now();
  for (int i = 0; i < streams; ++i) {
    engine::GenerateRequest request;
    request.prompt = *engine.tokenizer().encode(prompt_of(i));
    request.max_tokens = tokens;
    request.ignore_eos = true;
    request.cache.enabled = false;
    auto id = engine.submit(std::move(request), [&](const engine::Event& event) {
      if (event.kind != engine::Event::Kind::kFinished) return;
      const std::scoped_lock lock(mutex);
      --open;
      finished.notify_one();
    });
    if (!id.ok()) {
      std::fprintf(stderr, "%s\n", id.error().message.c_str());
      std::exit(1);
    }
  }
  std::unique_lock lock(mutex);
  finished.wait(lock, [&] { return open == 0; });
  return seconds_since(start);
}

// Reads a stream of server-sent events to its end.
void read_stream(uint16_t port, int stream, int tokens) {
  const std::string body = "{\"prompt\":\"" + prompt_of(stream) + "\",\"max_tokens\":" + std::to_string(tokens) +
                           ",\"temperature\":0,\"ignore_eos\":true,\"cache_prompt\":false,\"stream\":true}";
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
      "Content-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      write(socket, request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
    std::perror("server_cost");
    std::exit(1);
  }
  std::string all;
  char buffer[65536];
  for (ssize_t count = 1; (count = read(socket, buffer, sizeof buffer)) > 0;) all.append(buffer, size_t(count));
  close(socket);
  if (all.find("data: [DONE]") == std::string::npos) {
    std::fprintf(stderr, "server_cost: the stream did not end: %s\n", all.substr(0, 300).c_str());
    std::exit(1);
  }
}

double run_server(uint16_t port, int streams, int tokens) {
  const auto start = Clock::now();
  std::vector<std::thread> clients;
  for (int i = 0; i < streams; ++i) clients.emplace_back([=] { read_stream(port, i, tokens); });
  for (std::thread& client : clients) client.join();
  return seconds_since(start);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: server_cost MODEL [STREAMS [TOKENS [ROUNDS]]]\n");
    return 2;
  }
  const int streams = argc > 2 ? std::atoi(argv[2]) : 8;
  const int tokens = argc > 3 ? std::atoi(argv[3]) : 128;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 7;

  server::ServerSettings settings;
  settings.http.port = 0;
  settings.http.threads = 2;
  auto server = server::Server::start(settings);
  server::ServedModelOptions options;
  options.path = argv[1];
  options.id = "model";
  options.load.compute = engine::ComputeChoice::kI8;
  options.load.max_sequences = std::max(8, streams);
  options.load.context_length = 2048;
  options.load.chunk_ms = 150;  // as `serve` does
  if (!server.ok() || !(*server)->core().models.load(options).ok()) {
    std::fprintf(stderr, "server_cost: cannot serve %s\n", argv[1]);
    return 1;
  }
  engine::Engine& engine = *(*(*server)->core().models.current())->engine;
  run_engine(engine, streams, tokens);
  run_server((*server)->port(), streams, tokens);
  std::vector<double> direct, served, ratios, processor_ratios;
  for (int round = 0; round < rounds; ++round) {
    const double start = processor_seconds();
    direct.push_back(streams * tokens / run_engine(engine, streams, tokens));
    const double between = processor_seconds();
    served.push_back(streams * tokens / run_server((*server)->port(), streams, tokens));
    ratios.push_back(served.back() / direct.back());
    processor_ratios.push_back((processor_seconds() - between) / (between - start));
  }
  std::printf(
      "%d streams x %d tokens, %d rounds: engine %.1f tok/s, server %.1f tok/s, ratio %.3f; processor time %.3f\n",
      streams, tokens, rounds, median(direct), median(served), median(ratios), median(processor_ratios));
  return 0;
}
