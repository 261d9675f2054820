#include "server/gate.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "server/http/target.h"

namespace vedette::server {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;
constexpr size_t kScopeBytes = 16;

Digest digest(std::string_view text) {
  Digest out{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

struct HostPort {
  std::string host;  // lower case, without brackets and a final dot
  std::string port;  // "" if not given
  bool bracketed = false;
};

// "name", "name:80", "[::1]:80"; nothing for any other form, user information among them.
std::optional<HostPort> parse_host(std::string_view text) {
  HostPort out;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return {};
    out.host = lower(text.substr(1, close - 1));
    out.bracketed = true;
    text.remove_prefix(close + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    out.host = lower(text.substr(0, colon));
    text.remove_prefix(colon);
    if (out.host.size() > 1 && out.host.ends_with('.')) out.host.pop_back();
    const bool valid = std::all_of(out.host.begin(), out.host.end(),
                                   [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_'; });
    if (!valid) return {};
  }
  if (text.empty()) return out.host.empty() ? std::nullopt : std::optional(out);
  out.port = text.substr(1);
  const bool digits = std::all_of(out.port.begin(), out.port.end(), [](unsigned char c) { return std::isdigit(c); });
  if (text.front() != ':' || !digits || out.port.size() > 5 || out.host.empty()) return {};
  return out;
}

// inet_pton takes four decimal numbers and nothing else: no "127.1", no "0x7f000001", no name that begins so.
bool is_loopback(const HostPort& host) {
  if (host.bracketed) {
    in6_addr address{};
    return ::inet_pton(AF_INET6, host.host.c_str(), &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
  }
  if (host.host == "localhost" || host.host.ends_with(".localhost")) return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host.host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

bool is_loopback_origin(std::string_view origin) {
  const std::string text = lower(origin);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    const auto host = parse_host(std::string_view(text).substr(scheme.size()));
    return host && is_loopback(*host);
  }
  return false;
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

struct OriginVerdict {
  bool allowed = false, by_name = false, any = false;
};

// "null" (sandboxed frames, files) is nobody's name.
OriginVerdict judge_origin(std::string_view origin, const GateSettings& settings) {
  if (origin != "null") {
    const std::string folded = lower(origin);
    for (const std::string& listed : settings.origins)
      if (listed != "*" && listed != "localhost" && lower(listed) == folded) return {.allowed = true, .by_name = true};
    if (contains(settings.origins, "localhost") && is_loopback_origin(origin)) return {.allowed = true};
  }
  if (contains(settings.origins, "*")) return {.allowed = true, .any = true};
  return {};
}

// What a preflight asks for, if it is a list of field names that can be repeated in an answer.
std::string requested_headers(const HttpRequest& request) {
  const std::string* asked = request.header("access-control-request-headers");
  if (asked == nullptr) return "*";
  const bool valid = std::all_of(asked->begin(), asked->end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == ',' || c == ' ';
  });
  return valid && !asked->empty() ? *asked : "*";
}

}  // namespace

std::string_view presented_key(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  if (const std::string* value = request.header("authorization"); value != nullptr) {
    const std::string_view text = trim(*value);
    if (text.size() > kBearer.size() && lower(text.substr(0, kBearer.size())) == kBearer)
      return trim(text.substr(kBearer.size()));
  }
  const std::string* value = request.header("x-api-key");
  return value == nullptr ? std::string_view() : trim(*value);
}

bool key_is_valid(std::string_view key, const std::vector<std::string>& keys) {
  const Digest presented = digest(key);
  bool valid = false;
  // Every key is compared, by digests of one length: time tells neither which key nor how much of it was right.
  for (const std::string& known : keys) {
    const bool equal = CRYPTO_memcmp(presented.data(), digest(known).data(), presented.size()) == 0;
    valid |= equal && !known.empty();
  }
  return valid;
}

std::string scope_of(const HttpRequest& request, const GateSettings& settings) {
  const std::string_view key = presented_key(request);
  if (!key_is_valid(key, settings.keys)) return "";
  std::string out;
  const Digest hash = digest(key);
  for (size_t i = 0; i < kScopeBytes; ++i) out += fmt::format("{:02x}", hash[i]);
  return out;
}

bool host_is_allowed(std::string_view host_header, const GateSettings& settings) {
  // Browsers always send a host, so its absence (HTTP/1.0 probes) is no rebinding.
  if (!settings.check_host || host_header.empty()) return true;
  const auto host = parse_host(trim(host_header));
  if (!host) return false;
  if (is_loopback(*host)) return true;
  return std::any_of(settings.allowed_hosts.begin(), settings.allowed_hosts.end(), [&](const std::string& entry) {
    if (entry == "*") return true;
    const auto allowed = parse_host(trim(entry));
    if (!allowed) return lower(trim(entry)) == host->host;  // an IPv6 address without brackets
    return allowed->host == host->host && (allowed->port.empty() || allowed->port == host->port);
  });
}

HeaderList cors_headers(const HttpRequest& request, const GateSettings& settings) {
  const std::string* origin = request.header("origin");
  if (origin == nullptr || settings.origins.empty()) return {};
  const OriginVerdict verdict = judge_origin(*origin, settings);
  if (!verdict.allowed) return {};
  HeaderList out;
  out.emplace_back("Access-Control-Allow-Origin", verdict.any ? "*" : *origin);
  if (!verdict.any) out.emplace_back("Vary", "Origin");
  if (verdict.by_name && settings.credentials) out.emplace_back("Access-Control-Allow-Credentials", "true");
  if (request.method != "OPTIONS" || request.header("access-control-request-method") == nullptr) return out;
  out.emplace_back("Access-Control-Allow-Methods", settings.cors_methods);
  // "*" does not cover Authorization, nor anything with credentials: what is asked for is repeated.
  out.emplace_back("Access-Control-Allow-Headers",
                   settings.cors_headers == "*" ? requested_headers(request) : settings.cors_headers);
  out.emplace_back("Access-Control-Max-Age", "600");
  return out;
}

bool is_public(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return false;
  // The path before --api-prefix is taken off: below a prefix everything needs its key.
  const auto target = transport::parse_target(request.target.empty() ? request.path : request.target, "");
  if (!target.ok()) return false;
  return target->path == "/" || target->path == "/health" || target->path == "/v1/health";
}

GateVerdict pass_gate(const HttpRequest& request, const GateSettings& settings) {
  const std::string* host = request.header("host");
  if (!host_is_allowed(host == nullptr ? "" : *host, settings)) return GateVerdict::kForbiddenHost;
  if (request.method == "OPTIONS") return GateVerdict::kPreflight;
  if (settings.keys.empty() || is_public(request)) return GateVerdict::kPass;
  return key_is_valid(presented_key(request), settings.keys) ? GateVerdict::kPass : GateVerdict::kUnauthorized;
}

}  // namespace vedette::server
