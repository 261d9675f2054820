#include "hub/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

#include "base/error.h"

namespace vedette::hub {
namespace {

struct CurlDelete {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  void operator()(char* text) const { curl_free(text); }
};
template <typename T>
using Held = std::unique_ptr<T, CurlDelete>;

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  const Held<char> held(text);
  return text;
}

Held<CURLU> parse_url(const std::string& text) {
  Held<CURLU> url(curl_url());
  if (url && curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) url.reset();
  return url;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]" ||
         host == "::1";
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return std::string(text);
}

// One exchange under way.
struct Exchange {
  const HttpGet& request;
  HttpReply reply;
  std::optional<Error> error;
};

size_t take_header(char* data, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) exchange.reply.headers.clear();  // of an interim answer
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  std::string name = trimmed(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  exchange.reply.headers.emplace_back(std::move(name), trimmed(line.substr(colon + 1)));
  return line.size();
}

struct BodyTarget {
  Exchange& exchange;
  CURL* handle;
};

size_t take_body(char* data, size_t size, size_t count, void* user) {
  auto& target = *static_cast<BodyTarget*>(user);
  Exchange& exchange = target.exchange;
  const std::string_view piece(data, size * count);
  if (exchange.reply.status == 0) {
    long status = 0;
    curl_easy_getinfo(target.handle, CURLINFO_RESPONSE_CODE, &status);
    exchange.reply.status = static_cast<int>(status);
  }
  const bool good = exchange.reply.status >= 200 && exchange.reply.status < 300;
  if (good && exchange.request.sink) {
    Status taken = exchange.request.sink(exchange.reply, piece);
    if (taken.ok()) return piece.size();
    exchange.error = std::move(taken).error();
    return 0;
  }
  if (exchange.reply.body.size() + piece.size() > exchange.request.most_body_bytes) {
    exchange.error = corrupt_file("", "{}: the answer is longer than {} bytes", exchange.reply.url,
                                  exchange.request.most_body_bytes);
    return 0;
  }
  exchange.reply.body += piece;
  return piece.size();
}

// libcurl asks at least once a second, whatever it waits for.
int asks_to_stop(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const HttpGet*>(user)->stop.stop_requested() ? 1 : 0;
}

Held<curl_slist> header_list(const HttpGet& request, bool with_secrets) {
  curl_slist* list = nullptr;
  auto add = [&list](const std::pair<std::string, std::string>& header) {
    list = curl_slist_append(list, (header.first + ": " + header.second).c_str());
  };
  std::ranges::for_each(request.headers, add);
  if (with_secrets) std::ranges::for_each(request.secret_headers, add);
  return Held<curl_slist>(list);
}

void configure(CURL* handle, const HttpGet& request, const std::string& url, curl_slist* headers) {
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "vedette");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout_ms));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_timeout_s));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_timeout_ms));
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &asks_to_stop);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &request);
  // Beside the system's folder of certificates, which stays as libcurl was built with it.
  if (!request.extra_ca_file.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, request.extra_ca_file.c_str());
  if (const Held<CURLU> parsed = parse_url(url); parsed && is_loopback(part_of(parsed.get(), CURLUPART_HOST)))
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
}

Error from_curl(CURLcode code, const std::string& url, const char* detail) {
  const std::string what = detail != nullptr && *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return unavailable("unreachable", "{} cannot be reached: {}", http_origin(url), what);
    case CURLE_ABORTED_BY_CALLBACK:
      return cancelled("", "{}: the transfer was cancelled", http_origin(url));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return invalid_request("", "{}: expected a URL with http:// or https://", url);
    default:
      return unavailable("transfer", "{}: the transfer ended early: {}", http_origin(url), what);
  }
}

Result<HttpReply> exchange_once(const HttpGet& request, const std::string& url, bool with_secrets) {
  const Held<CURL> handle(curl_easy_init());
  if (!handle) return internal_error("", "libcurl gave no handle");
  Exchange exchange{request, {}, std::nullopt};
  exchange.reply.url = url;
  const Held<curl_slist> headers = header_list(request, with_secrets);
  configure(handle.get(), request, url, headers.get());
  BodyTarget target{exchange, handle.get()};
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(handle.get(), CURLOPT_HEADERFUNCTION, &take_header);
  curl_easy_setopt(handle.get(), CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, &take_body);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &target);
  const CURLcode code = curl_easy_perform(handle.get());
  if (exchange.error) return std::move(*exchange.error);
  if (code != CURLE_OK) return from_curl(code, url, detail);
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  exchange.reply.status = static_cast<int>(status);
  return std::move(exchange.reply);
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Where a redirect leads. Never from https to http, but on this machine.
Result<std::string> redirect_target(const HttpReply& reply) {
  const std::string* location = reply.header("location");
  const Held<CURLU> url = parse_url(reply.url);
  if (location == nullptr || !url || curl_url_set(url.get(), CURLUPART_URL, location->c_str(), 0) != CURLUE_OK)
    return corrupt_file("", "{}: a redirect (status {}) without a usable Location", reply.url, reply.status);
  std::string target = part_of(url.get(), CURLUPART_URL);
  const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
  const bool weaker = reply.url.starts_with("https://") && scheme == "http";
  if ((scheme != "http" && scheme != "https") || (weaker && !is_loopback(part_of(url.get(), CURLUPART_HOST))))
    return corrupt_file("", "{}: a redirect to {}, which is not followed", reply.url, target.substr(0, 200));
  return target;
}

// libcurl's own start is not thread-safe everywhere.
void start_library() {
  [[maybe_unused]] static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

}  // namespace

const std::string* HttpReply::header(std::string_view lower_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_name) return &value;
  }
  return nullptr;
}

std::string http_origin(const std::string& url) {
  const Held<CURLU> parsed = parse_url(url);
  if (!parsed) return "";
  const std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return "";
  return scheme + "://" + part_of(parsed.get(), CURLUPART_HOST) + ":" +
         part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

Result<HttpReply> http_get(const HttpGet& request) {
  start_library();
  const std::string origin = http_origin(request.url);
  if (origin.empty())
    return invalid_request("", "'{}': expected a URL with http:// or https://", request.url.substr(0, 200));
  std::string url = request.url;
  bool with_secrets = true;  // a chain that has left the origin does not get them back
  for (int hop = 0;; ++hop) {
    VEDETTE_ASSIGN_OR_RETURN(HttpReply reply, exchange_once(request, url, with_secrets));
    if (!is_redirect(reply.status) || request.most_redirects == 0) return reply;
    if (hop >= request.most_redirects)
      return corrupt_file("", "{}: more than {} redirects", request.url, request.most_redirects);
    VEDETTE_ASSIGN_OR_RETURN(url, redirect_target(reply));
    with_secrets = with_secrets && http_origin(url) == origin;
  }
}

}  // namespace vedette::hub
