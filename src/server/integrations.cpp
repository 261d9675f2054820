#include "server/integrations.h"

#include <fmt/format.h>

namespace vedette::server {
namespace {

constexpr std::string_view kAnyKey = "vedette";  // where the server wants none, clients still insist on one
constexpr int64_t kCompactFrom = 100'000;        // smaller windows are left to the "prompt is too long" answer

std::string key_of(const ServedAddress& address) {
  if (!address.key.empty()) return address.key;
  return address.needs_key ? "YOUR-API-KEY" : std::string(kAnyKey);
}

// A basic string of TOML; JSON's escapes are a subset of what TOML reads.
std::string toml_string(std::string_view text) {
  return Json(text).dump();
}

Json file(std::string_view path, std::string content) {
  Json out = Json::object();
  out.set("path", path);
  out.set("content", std::move(content));
  return out;
}

Json entry(std::string_view id, std::string_view name, std::string_view how, Json files, std::string command) {
  Json out = Json::object();
  out.set("id", id);
  out.set("name", name);
  out.set("how", how);
  out.set("files", std::move(files));
  out.set("command", std::move(command));
  return out;
}

Json claude_code(const ServedAddress& address) {
  Json environment = Json::object();
  for (const auto& [name, value] : claude_environment(address)) environment.set(name, value);
  Json settings = Json::object();
  settings.set("env", std::move(environment));
  Json files = Json::array();
  files.push_back(file(".claude/settings.local.json", settings.dump(2) + "\n"));
  return entry("claude-code", "Claude Code", "in a project's folder; or let `vedette claude` start it",
               std::move(files), "vedette claude --url " + shell_quoted(address.base_url));
}

Json codex(const ServedAddress& address) {
  std::string toml = fmt::format("model = {}\nmodel_provider = \"vedette\"\n", toml_string(address.model));
  if (address.context_length > 0) toml += fmt::format("model_context_window = {}\n", address.context_length);
  toml += fmt::format(
      "\n[model_providers.vedette]\nname = \"Vedette\"\nbase_url = {}\nwire_api = \"responses\"\n"
      "env_key = \"VEDETTE_API_KEY\"\n",
      toml_string(address.base_url + "/v1"));
  Json files = Json::array();
  files.push_back(file("~/.codex/config.toml", std::move(toml)));
  return entry("codex", "Codex", "add to the configuration; the key comes from VEDETTE_API_KEY", std::move(files),
               fmt::format("VEDETTE_API_KEY={} codex", shell_quoted(key_of(address))));
}

Json opencode(const ServedAddress& address) {
  Json options = Json::object();
  options.set("baseURL", address.base_url + "/v1");
  options.set("apiKey", key_of(address));
  Json model = Json::object();
  model.set("name", address.model);
  if (address.context_length > 0) {
    Json limit = Json::object();
    limit.set("context", address.context_length);
    limit.set("output", address.max_output_tokens > 0 ? address.max_output_tokens : address.context_length);
    model.set("limit", std::move(limit));
  }
  Json models = Json::object();
  models.set(address.model, std::move(model));
  Json provider = Json::object();
  provider.set("npm", "@ai-sdk/openai-compatible");
  provider.set("name", "Vedette");
  provider.set("options", std::move(options));
  provider.set("models", std::move(models));
  Json providers = Json::object();
  providers.set("vedette", std::move(provider));
  Json config = Json::object();
  config.set("$schema", "https://opencode.ai/config.json");
  config.set("provider", std::move(providers));
  config.set("model", "vedette/" + address.model);
  Json files = Json::array();
  files.push_back(file("opencode.json", config.dump(2) + "\n"));
  return entry("opencode", "opencode", "in a project's folder", std::move(files), "opencode");
}

Json openai_client(const ServedAddress& address) {
  const std::string python = fmt::format(
      "from openai import OpenAI\n\nclient = OpenAI(base_url={}, api_key={})\nreply = client.chat.completions.create(\n"
      "    model={}, messages=[{{\"role\": \"user\", \"content\": \"Hello\"}}])\n"
      "print(reply.choices[0].message.content)\n",
      toml_string(address.base_url + "/v1"), toml_string(key_of(address)), toml_string(address.model));
  Json files = Json::array();
  files.push_back(file("hello.py", python));
  return entry("openai", "OpenAI client", "any client of the OpenAI API: base URL, key and model", std::move(files),
               fmt::format("OPENAI_BASE_URL={} OPENAI_API_KEY={} python3 hello.py",
                           shell_quoted(address.base_url + "/v1"), shell_quoted(key_of(address))));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> claude_environment(const ServedAddress& address) {
  std::vector<std::pair<std::string, std::string>> out = {
      {"ANTHROPIC_BASE_URL", address.base_url},
      {"ANTHROPIC_AUTH_TOKEN", key_of(address)},
      {"ANTHROPIC_MODEL", address.model},
      {"ANTHROPIC_SMALL_FAST_MODEL", address.model},
  };
  for (const std::string tier : {"OPUS", "SONNET", "HAIKU", "FABLE"}) {
    const std::string name = "ANTHROPIC_DEFAULT_" + tier + "_MODEL";
    out.emplace_back(name, address.model);
    out.emplace_back(name + "_NAME", address.model);
    out.emplace_back(name + "_DESCRIPTION", "Served by Vedette at " + address.base_url);
  }
  if (address.max_output_tokens > 0)
    out.emplace_back("CLAUDE_CODE_MAX_OUTPUT_TOKENS", std::to_string(address.max_output_tokens));
  // Of a model it does not know it assumes a million.
  if (address.context_length > 0)
    out.emplace_back("CLAUDE_CODE_MAX_CONTEXT_TOKENS", std::to_string(address.context_length));
  if (address.context_length >= kCompactFrom)
    out.emplace_back("CLAUDE_CODE_AUTO_COMPACT_WINDOW", std::to_string(address.context_length * 8 / 10));
  return out;
}

std::vector<std::string_view> claude_removed_variables() {
  return {"ANTHROPIC_API_KEY",       "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
          "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE",  "CLAUDE_CODE_USE_ANTHROPIC_AWS"};
}

Json integrations(const ServedAddress& address) {
  Json list = Json::array();
  for (Json one : {claude_code(address), codex(address), opencode(address), openai_client(address)})
    list.push_back(std::move(one));
  Json out = Json::object();
  out.set("base_url", address.base_url);
  out.set("model", address.model.empty() ? Json() : Json(address.model));
  out.set("needs_key", address.needs_key);
  out.set("integrations", std::move(list));
  return out;
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

}  // namespace vedette::server
