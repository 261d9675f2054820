// Ready-made configurations of clients: environment of Claude Code, files of Codex and opencode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace vedette::server {

// What a client needs to know of a server.
struct ServedAddress {
  std::string base_url;           // "http://127.0.0.1:8080", with --api-prefix, without /v1
  std::string key;                // "": none
  bool needs_key = false;         // one must be given, whether or not it is known here
  std::string model;              // served id
  int64_t context_length = 0;     // 0: unknown
  int64_t max_output_tokens = 0;  // 0: unknown
};

// Variables of Claude Code, in order; and those that must not be set.
std::vector<std::pair<std::string, std::string>> claude_environment(const ServedAddress& address);
std::vector<std::string_view> claude_removed_variables();

// {integrations: [{id, name, how, files: [{path, content}], command}]}: claude-code, codex, opencode, openai.
Json integrations(const ServedAddress& address);

// Text in single quotes, for a POSIX shell.
std::string shell_quoted(std::string_view text);

}  // namespace vedette::server
