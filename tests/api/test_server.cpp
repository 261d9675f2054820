// A server for tests, with replies by script:  test_server MODEL [--script FILE] [--option VALUE]...
// Prints its address on a line, serves until standard input ends. --script FILE is read once and its entries wear out;
// --live-script FILE is read anew for each request and does not.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

#include "base/error.h"
#include "scripted_reply.h"
#include "server/server.h"

namespace {

using namespace vedette;

int64_t number(const std::map<std::string, std::string>& options, const std::string& name, int64_t otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : std::stoll(found->second);
}

std::string word(const std::map<std::string, std::string>& options, const std::string& name) {
  const auto found = options.find(name);
  return found == options.end() ? "" : found->second;
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int fail(const Error& error) {
  std::fprintf(stderr, "test_server: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) {
    std::fprintf(stderr, "usage: test_server MODEL [--option VALUE]...\n");
    return 2;
  }
  mallopt(M_ARENA_MAX, 2);  // as `serve` does
  std::map<std::string, std::string> options;
  for (int i = 2; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];

  server::ServedModelOptions model;
  model.path = argv[1];
  model.id = word(options, "--id").empty() ? "test-model" : word(options, "--id");
  model.load.threads = static_cast<int>(number(options, "--threads", 2));
  model.load.context_length = number(options, "--ctx-size", 0);
  model.load.max_sequences = static_cast<int>(number(options, "--parallel", 4));
  model.load.compute = engine::ComputeChoice::kI8;
  model.load.chunk_ms = 150;  // as `serve` does
  if (options.contains("--template")) {
    model.chat_template = text_of_file(word(options, "--template"));
    if (model.chat_template.empty()) return fail(not_found("", "--template: the file is missing or empty"));
  }
  test::Script script;
  std::mutex mutex;
  if (options.contains("--script")) {
    auto read = test::Script::read(word(options, "--script"));
    if (!read.ok()) return fail(read.error());
    script = std::move(*read);
  }
  const std::string live_script = word(options, "--live-script");

  server::ServerSettings settings;
  settings.http.port = 0;
  settings.http.host = word(options, "--host").empty() ? "127.0.0.1" : word(options, "--host");
  settings.http.threads = 4;
  settings.endpoints.metrics = true;
  settings.endpoints.settings = true;
  settings.version = "test";
  settings.sse_ping_ms = static_cast<int>(number(options, "--ping-ms", 15'000));
  if (options.contains("--key")) settings.gate.keys = {word(options, "--key")};
  if (options.contains("--key2")) settings.gate.keys.push_back(word(options, "--key2"));
  auto started = server::Server::start(settings);
  if (!started.ok()) return fail(started.error());
  server::Server& server = **started;

  server::ServedModel* loaded = nullptr;
  model.before_submit = [&](const server::GenerateJob&, int, engine::GenerateRequest& request) {
    if (loaded == nullptr) return;
    const std::scoped_lock lock(mutex);
    const std::string prompt = loaded->tokenizer().decode(request.prompt, true);
    if (!live_script.empty()) {
      auto read = test::Script::read(live_script);
      if (!read.ok()) std::abort();
      script = std::move(*read);
    }
    const std::string* reply = script.take(prompt);
    if (reply == nullptr) return;
    request.constraint = test::force_text(loaded->tokenizer(), *reply);
    request.ignore_eos = true;
  };
  const Status ready = server.core().models.load(std::move(model));
  if (!ready.ok()) return fail(ready.error());
  loaded = server.core().models.current()->get();
  std::printf("%s\n", server.address().c_str());
  std::fflush(stdout);
  char buffer[256];
  while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
  }
  server.stop(1000);
  return 0;
}
