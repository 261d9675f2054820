// The request target taken apart: path, query, prefix.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vedette::server::transport {

struct Target {
  std::string path;                                        // decoded, without trailing slashes and prefix
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order; "+" is a space
  std::string authority;                                   // of an absolute target: "example.org:80"
  bool prefixed = true;                                    // the path began with the prefix (true without one)
};

// Accepts "/path?query", "http://authority/path?query" and "*". `prefix` as --api-prefix gives it ("/llama", "llama/").
// Errors (kInvalidRequest): any other form, malformed percent-encoding, control characters in the path, NUL anywhere.
Result<Target> parse_target(std::string_view target, std::string_view prefix);

}  // namespace vedette::server::transport
