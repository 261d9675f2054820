#include "server/http/wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

#include "base/json.h"
#include "server/http/problem.h"

namespace vedette::server::transport {
namespace {

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_framing(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kFraming = {"content-length", "transfer-encoding", "connection",
                                                               "keep-alive", "content-type"};
  return std::any_of(kFraming.begin(), kFraming.end(),
                     [&](std::string_view framing) { return equal_without_case(name, framing); });
}

void append_clean(std::string& out, std::string_view text) {
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  append_clean(out, name);
  out += ": ";
  append_clean(out, value);
  out += "\r\n";
}

// IMF-fixdate of RFC 9110, independent of the locale.
void append_date(std::string& out) {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  out += fmt::format("Date: {}, {:02} {} {} {:02}:{:02}:{:02} GMT\r\n", kDays[static_cast<size_t>(utc.tm_wday)],
                     utc.tm_mday, kMonths[static_cast<size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                     utc.tm_sec);
}

const char* problem_type(int status) {
  if (status >= 500) return "server_error";
  return "invalid_request_error";
}

}  // namespace

HttpResponse problem_response(const Problem& problem) {
  Json error = Json::object();
  error.set("message", problem.message);
  error.set("type", problem_type(problem.status));
  error.set("code", problem.status);
  error.set("param", Json());
  Json body = Json::object();
  body.set("error", std::move(error));
  return {.status = problem.status, .body = body.dump()};
}

bool status_has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 529:
      return "Overloaded";
    default:
      return "Status";
  }
}

std::string format_head(int status, std::string_view content_type, const HeaderList& headers,
                        std::optional<size_t> length, const AnswerForm& form) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nServer: vedette\r\n", status, reason_phrase(status));
  append_date(out);
  if (!content_type.empty() && status_has_body(status)) append_field(out, "Content-Type", content_type);
  for (const auto& [name, value] : headers)
    if (!name.empty() && !is_framing(name)) append_field(out, name, value);
  if (status_has_body(status)) {
    if (length)
      out += fmt::format("Content-Length: {}\r\n", *length);
    else if (!form.http_1_0)
      out += "Transfer-Encoding: chunked\r\n";
  }
  if (!form.keep_alive)
    out += "Connection: close\r\n";
  else if (form.http_1_0)
    out += "Connection: keep-alive\r\n";
  out += "\r\n";
  return out;
}

}  // namespace vedette::server::transport
