// `claude`: Claude Code on a running server. Replaces this process; nothing else on the machine is changed.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "cli/context.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "hub/http_client.h"
#include "server/integrations.h"

namespace vedette::cli {
namespace {

constexpr int kProbeMs = 10'000;

int64_t integer_member(const Json& object, std::string_view name) {
  const Json* value = object.find(name);
  return value != nullptr && value->is_int() ? value->as_int() : 0;
}

std::string text_member(const Json& object, std::string_view name) {
  const Json* value = object.find(name);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

Error no_server(const std::string& url, const std::string& what) {
  return unavailable("",
                     "no Vedette server answers at {} ({}); start one with `vedette serve MODEL`, or name it with "
                     "--url",
                     url, what);
}

// What /health says of the model; it needs no key.
Result<server::ServedAddress> probe(const std::string& url) {
  auto reply = hub::http_get({.url = url + "/health", .connect_timeout_ms = kProbeMs, .total_timeout_ms = kProbeMs});
  if (!reply.ok()) {
    if (reply.error().kind == ErrorKind::kInvalidRequest)
      return invalid_request("--url", "--url: {}", reply.error().message);
    return no_server(url, reply.error().message);
  }
  const auto health = parse_json(reply->body, url + "/health");
  const std::string status = health.ok() ? text_member(*health, "status") : "";
  if (status.empty()) return no_server(url, fmt::format("/health gave status {} and no such answer", reply->status));
  if (status == "loading")
    return unavailable("", "the server at {} is still loading {}; try again in a moment", url,
                       text_member(*health, "model"));
  server::ServedAddress address;
  address.base_url = url;
  address.model = text_member(*health, "model");
  address.context_length = integer_member(*health, "context_window");
  address.max_output_tokens = integer_member(*health, "max_output_tokens");
  if ((status != "ok" && status != "sleeping") || address.model.empty())
    return unavailable("",
                       "the server at {} has no model ({}); load one with POST /admin/load, or start it as `vedette "
                       "serve MODEL`",
                       url, status);
  return address;
}

std::string exports(const server::ServedAddress& address) {
  std::string out;
  for (const std::string_view name : server::claude_removed_variables()) out += fmt::format("unset {}\n", name);
  for (const auto& [name, value] : server::claude_environment(address))
    out += fmt::format("export {}={}\n", name, server::shell_quoted(value));
  return out;
}

std::string settings_json(const server::ServedAddress& address) {
  Json environment = Json::object();
  for (const auto& [name, value] : server::claude_environment(address)) environment.set(name, value);
  Json out = Json::object();
  out.set("env", std::move(environment));
  return out.dump(2) + "\n";
}

Error launch(const server::ServedAddress& address, const std::vector<std::string>& arguments) {
  for (const std::string_view name : server::claude_removed_variables()) unsetenv(std::string(name).c_str());
  for (const auto& [name, value] : server::claude_environment(address)) setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words = {"claude"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  if (errno == ENOENT)
    return not_found("",
                     "Claude Code is not installed (no `claude` in PATH); install it with `npm install -g "
                     "@anthropic-ai/claude-code`");
  return unavailable("", "`claude` cannot be started: {}", std::strerror(errno));
}

}  // namespace

Result<int> run_claude(Context& context) {
  std::string url = context.options.text("--url").value_or("http://127.0.0.1:8080");
  while (url.ends_with('/')) url.pop_back();
  const auto keys = context.options.texts("--api-key");
  const std::string key = context.options.text("--key").value_or(keys.empty() ? "" : keys.back());
  const bool print_env = context.options.flag("--print-env");
  const bool print_settings = context.options.flag("--print-settings");
  read_verbosity(context.options);
  VEDETTE_RETURN_IF_ERROR(start(context));
  if (print_env && print_settings)
    return invalid_request("--print-env", "--print-env and --print-settings exclude each other; give one");
  VEDETTE_ASSIGN_OR_RETURN(server::ServedAddress address, probe(url));
  address.key = key;
  if (print_env || print_settings) {
    VEDETTE_RETURN_IF_ERROR(print(print_env ? exports(address) : settings_json(address)));
    return kExitDone;
  }
  return launch(address, context.operands);
}

}  // namespace vedette::cli
