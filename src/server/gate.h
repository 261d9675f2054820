// What every request passes before its route: Host check, CORS, keys. Pure functions of the request and the settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace vedette::server {

struct GateSettings {
  std::vector<std::string> keys;           // empty: no key is asked for
  std::vector<std::string> allowed_hosts;  // --allowed-hosts, besides the loopback names: "name", "name:port", "*"
  bool check_host = true;                  // loopback binds, and other binds without a key
  std::vector<std::string> origins;  // allowed origins; "*" any (without credentials), "localhost" any loopback one
  bool credentials = false;          // Access-Control-Allow-Credentials for origins listed by name
  std::string cors_headers = "*";    // "*": what a preflight asks for
  std::string cors_methods = "GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD";
};

// The key presented as `Authorization: Bearer K` or `x-api-key: K`; "" if none.
std::string_view presented_key(const HttpRequest& request);
// Compares with every key in constant time.
bool key_is_valid(std::string_view key, const std::vector<std::string>& keys);
// The cache scope of a request: a hash of its valid key, "" without keys.
std::string scope_of(const HttpRequest& request, const GateSettings& settings);
// An absent host passes: no browser leaves it out.
bool host_is_allowed(std::string_view host_header, const GateSettings& settings);
// Headers for the answer to this request; none for foreign origins unless configured.
HeaderList cors_headers(const HttpRequest& request, const GateSettings& settings);
// GET and HEAD of /, /health, /v1/health need no key; below --api-prefix they do.
bool is_public(const HttpRequest& request);

enum class GateVerdict { kPass, kPreflight, kForbiddenHost, kUnauthorized };
// The host comes first; then OPTIONS, which needs no key.
GateVerdict pass_gate(const HttpRequest& request, const GateSettings& settings);

}  // namespace vedette::server
