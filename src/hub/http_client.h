// HTTP as a client: one GET at a time. libcurl stays behind this header (http_client.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vedette::hub {

struct HttpReply {
  int status = 0;
  std::string url;                                           // that answered, after redirects
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, of the last answer
  std::string body;                                          // "" where a sink took it

  const std::string* header(std::string_view lower_name) const;
};

struct HttpGet {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Only for the scheme, host and port of `url`: dropped on a redirect elsewhere.
  std::vector<std::pair<std::string, std::string>> secret_headers = {};
  int connect_timeout_ms = 15'000;
  int stall_timeout_s = 30;  // below 1 byte per second for so long
  int total_timeout_ms = 0;  // 0: none
  int most_redirects = 5;    // 0: a redirect is an answer like any other
  size_t most_body_bytes = size_t{64} << 20;
  std::string extra_ca_file = {};  // PEM, trusted besides the system's
  // Takes the body of a 2xx answer piece by piece, with the answer's head; an error ends the transfer and is returned.
  std::function<Status(const HttpReply& head, std::string_view piece)> sink = {};
  std::stop_token stop = {};
};

// Errors: kInvalidRequest (no http or https URL), kUnavailable (unreachable, timed out, cut off; field "unreachable"
// where no connection came about, "transfer" where one broke), kCorruptFile (a body beyond its limit, a bad redirect),
// kCancelled (`stop`). Any status is an answer. Proxies come from the environment, but never for loopback addresses.
Result<HttpReply> http_get(const HttpGet& request);

// "scheme://host:port" of a URL, or "" if it is none of http or https. Two URLs of one origin may share secrets.
std::string http_origin(const std::string& url);

}  // namespace vedette::hub
