#include "server/gate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace vedette::server {
namespace {

HttpRequest request_of(const std::string& method, const std::string& target, HeaderList headers = {}) {
  return {.method = method, .target = target, .path = target, .headers = std::move(headers)};
}

const std::string* find(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (key == name) return &value;
  return nullptr;
}

TEST(Gate, LoopbackHostsPass) {
  const GateSettings settings;
  for (const char* host : {"localhost", "LocalHost:8080", "localhost.", "a.b.localhost:1", "127.0.0.1",
                           "127.255.3.4:80", "[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]", ""})
    EXPECT_TRUE(host_is_allowed(host, settings)) << host;
}

TEST(Gate, OtherHostsDoNot) {
  const GateSettings settings;
  for (const char* host : {"evil.example",
                           "evil.example:8080",
                           "localhost.evil.example",
                           "127.0.0.1.evil.example",
                           "notlocalhost",
                           "128.0.0.1",
                           "0.0.0.0",
                           "127.1",
                           "0x7f.0.0.1",
                           "2130706433",
                           "0177.0.0.1",
                           "127.0.0.1:80:80",
                           "127.0.0.1:x",
                           "127.0.0.1:123456",
                           "[::2]",
                           "[::1",
                           "[::1]x",
                           "::1",
                           "[::ffff:8.8.8.8]",
                           "[localhost]",
                           "user@localhost",
                           "localhost@evil.example",
                           "localhost/evil",
                           "evil.example#localhost",
                           "evil localhost",
                           ":80",
                           ".",
                           "[]"})
    EXPECT_FALSE(host_is_allowed(host, settings)) << host;
}

TEST(Gate, ConfiguredHosts) {
  GateSettings settings;
  settings.allowed_hosts = {"Box.Local", "api.example:8443", "[fd00::1]", "192.168.1.5"};
  for (const char* host : {"box.local", "box.local:80", "API.example:8443", "[fd00::1]:80", "192.168.1.5:1"})
    EXPECT_TRUE(host_is_allowed(host, settings)) << host;
  for (const char* host : {"api.example", "api.example:80", "x.box.local", "evil.example"})
    EXPECT_FALSE(host_is_allowed(host, settings)) << host;
  settings.allowed_hosts = {"*"};
  EXPECT_TRUE(host_is_allowed("evil.example", settings));
  settings = {};
  settings.check_host = false;
  EXPECT_TRUE(host_is_allowed("evil.example", settings));
}

TEST(Gate, KeysAreReadFromEitherHeader) {
  EXPECT_EQ(presented_key(request_of("GET", "/", {{"authorization", "Bearer k1"}})), "k1");
  EXPECT_EQ(presented_key(request_of("GET", "/", {{"authorization", "bEARER   k1 "}})), "k1");
  EXPECT_EQ(presented_key(request_of("GET", "/", {{"x-api-key", " k2"}})), "k2");
  EXPECT_EQ(presented_key(request_of("GET", "/", {{"authorization", "Basic abc"}, {"x-api-key", "k2"}})), "k2");
  EXPECT_EQ(presented_key(request_of("GET", "/", {{"authorization", "Bearer k1"}, {"x-api-key", "k2"}})), "k1");
  EXPECT_EQ(presented_key(request_of("GET", "/", {{"authorization", "Bearer"}})), "");
  EXPECT_EQ(presented_key(request_of("GET", "/")), "");
}

TEST(Gate, AnyOfTheKeysIsValid) {
  const std::vector<std::string> keys = {"alpha", "beta", ""};
  EXPECT_TRUE(key_is_valid("alpha", keys));
  EXPECT_TRUE(key_is_valid("beta", keys));
  for (const char* key : {"", "alph", "alphaa", "Alpha", "gamma"}) EXPECT_FALSE(key_is_valid(key, keys)) << key;
  EXPECT_FALSE(key_is_valid("", {}));
}

TEST(Gate, ScopesTellKeysApartWithoutNamingThem) {
  GateSettings settings;
  EXPECT_EQ(scope_of(request_of("GET", "/", {{"x-api-key", "alpha"}}), settings), "");
  settings.keys = {"alpha", "beta"};
  const std::string alpha = scope_of(request_of("GET", "/", {{"x-api-key", "alpha"}}), settings);
  // SHA-256 of "alpha", by sha256sum.
  EXPECT_EQ(alpha, "8ed3f6ad685b959ead7022518e1af76c");
  EXPECT_EQ(alpha, scope_of(request_of("POST", "/x", {{"authorization", "Bearer alpha"}}), settings));
  EXPECT_NE(alpha, scope_of(request_of("GET", "/", {{"x-api-key", "beta"}}), settings));
  EXPECT_EQ(scope_of(request_of("GET", "/", {{"x-api-key", "gamma"}}), settings), "");
}

TEST(Gate, PublicRoutes) {
  for (const char* target : {"/", "/health", "/v1/health", "/health/", "/health?x=1", "/?q", "http://localhost/health"})
    for (const char* method : {"GET", "HEAD"}) EXPECT_TRUE(is_public(request_of(method, target))) << target;
  for (const char* target : {"/v1/models", "/llama/health", "/healthy", "/health/x", "/HEALTH", "*"})
    EXPECT_FALSE(is_public(request_of("GET", target))) << target;
  for (const char* method : {"POST", "PUT", "DELETE", "get"}) EXPECT_FALSE(is_public(request_of(method, "/health")));
  // Below a prefix the path is "/health" too, but not the target.
  HttpRequest prefixed = request_of("GET", "/llama/health");
  prefixed.path = "/health";
  EXPECT_FALSE(is_public(prefixed));
}

TEST(Gate, Verdicts) {
  GateSettings settings;
  settings.keys = {"k"};
  const HeaderList local = {{"host", "localhost:8080"}};
  HeaderList with_key = local;
  with_key.emplace_back("x-api-key", "k");
  EXPECT_EQ(pass_gate(request_of("GET", "/health", local), settings), GateVerdict::kPass);
  EXPECT_EQ(pass_gate(request_of("POST", "/health", local), settings), GateVerdict::kUnauthorized);
  EXPECT_EQ(pass_gate(request_of("GET", "/v1/models", local), settings), GateVerdict::kUnauthorized);
  EXPECT_EQ(pass_gate(request_of("GET", "/v1/models", with_key), settings), GateVerdict::kPass);
  EXPECT_EQ(pass_gate(request_of("OPTIONS", "/v1/models", local), settings), GateVerdict::kPreflight);
  HeaderList foreign = with_key;
  foreign[0].second = "evil.example";
  EXPECT_EQ(pass_gate(request_of("GET", "/health", foreign), settings), GateVerdict::kForbiddenHost);
  EXPECT_EQ(pass_gate(request_of("OPTIONS", "/", foreign), settings), GateVerdict::kForbiddenHost);
  settings.keys.clear();
  EXPECT_EQ(pass_gate(request_of("GET", "/v1/models", local), settings), GateVerdict::kPass);
}

HeaderList cors(const std::string& origin, const GateSettings& settings, const std::string& method = "GET",
                HeaderList headers = {}) {
  headers.emplace_back("origin", origin);
  return cors_headers(request_of(method, "/", std::move(headers)), settings);
}

TEST(Gate, ForeignOriginsGetNothingByDefault) {
  GateSettings settings;
  for (const char* origin : {"https://evil.example", "null", "http://localhost:3000", ""})
    EXPECT_TRUE(cors(origin, settings).empty()) << origin;
  settings.origins = {"localhost", "https://app.example"};
  settings.credentials = true;
  for (const char* origin : {"https://evil.example", "null", "http://app.example", "https://app.example:444",
                             "https://app.example.evil", "http://localhost.evil.example",
                             "http://127.0.0.1@evil.example", "file://localhost", "http://localhost/x", "localhost"})
    EXPECT_TRUE(cors(origin, settings).empty()) << origin;
  EXPECT_TRUE(cors_headers(request_of("GET", "/"), settings).empty());
}

TEST(Gate, ConfiguredOrigins) {
  GateSettings settings;
  settings.origins = {"localhost", "https://app.example"};
  settings.credentials = true;
  for (const char* origin : {"http://localhost:3000", "https://localhost", "http://127.0.0.1:1", "http://[::1]:5173"}) {
    const HeaderList headers = cors(origin, settings);
    ASSERT_NE(find(headers, "Access-Control-Allow-Origin"), nullptr) << origin;
    EXPECT_EQ(*find(headers, "Access-Control-Allow-Origin"), origin);
    EXPECT_EQ(find(headers, "Access-Control-Allow-Credentials"), nullptr);
    EXPECT_EQ(*find(headers, "Vary"), "Origin");
  }
  const HeaderList named = cors("https://app.example", settings);
  EXPECT_EQ(*find(named, "Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(*find(named, "Access-Control-Allow-Credentials"), "true");
  settings.origins = {"*"};
  const HeaderList any = cors("https://evil.example", settings);
  EXPECT_EQ(*find(any, "Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(find(any, "Access-Control-Allow-Credentials"), nullptr) << "never for any origin";
}

TEST(Gate, Preflight) {
  GateSettings settings;
  settings.origins = {"https://app.example"};
  const HeaderList asked = {{"access-control-request-method", "POST"},
                            {"access-control-request-headers", "authorization, x-api-key"}};
  const HeaderList headers = cors("https://app.example", settings, "OPTIONS", asked);
  EXPECT_EQ(*find(headers, "Access-Control-Allow-Methods"), settings.cors_methods);
  EXPECT_EQ(*find(headers, "Access-Control-Allow-Headers"), "authorization, x-api-key");
  EXPECT_NE(find(headers, "Access-Control-Max-Age"), nullptr);
  EXPECT_EQ(find(cors("https://app.example", settings, "GET", asked), "Access-Control-Allow-Methods"), nullptr);
  EXPECT_TRUE(cors("https://evil.example", settings, "OPTIONS", asked).empty());
  settings.cors_headers = "X-Only";
  EXPECT_EQ(*find(cors("https://app.example", settings, "OPTIONS", asked), "Access-Control-Allow-Headers"), "X-Only");
}

}  // namespace
}  // namespace vedette::server
