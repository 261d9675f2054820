#include "server/http/target.h"

#include <algorithm>

#include "base/error.h"

namespace vedette::server::transport {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return invalid_request("", "request target: '%' at byte {} is not followed by two hexadecimal digits", i);
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (c == '\0') return invalid_request("", "request target: a NUL character is not allowed");
    out += c;
  }
  return out;
}

Status parse_query(std::string_view text, std::vector<std::pair<std::string, std::string>>& query) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    VEDETTE_ASSIGN_OR_RETURN(std::string name, decode(part.substr(0, equals), true));
    VEDETTE_ASSIGN_OR_RETURN(std::string value, decode(part.substr(std::min(equals + 1, part.size())), true));
    query.emplace_back(std::move(name), std::move(value));
  }
  return ok_status();
}

bool starts_without_case(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i)
    if ((text[i] | 0x20) != (lower[i] | 0x20)) return false;
  return true;
}

void strip_trailing_slashes(std::string& path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
}

void strip_prefix(Target& target, std::string_view prefix) {
  while (!prefix.empty() && prefix.back() == '/') prefix.remove_suffix(1);
  while (!prefix.empty() && prefix.front() == '/') prefix.remove_prefix(1);
  if (prefix.empty()) return;
  const std::string_view rest = std::string_view(target.path).substr(1);
  target.prefixed = rest.starts_with(prefix) && (rest.size() == prefix.size() || rest[prefix.size()] == '/');
  if (!target.prefixed) return;
  target.path.erase(0, 1 + prefix.size());
  if (target.path.empty()) target.path = "/";
}

}  // namespace

Result<Target> parse_target(std::string_view target, std::string_view prefix) {
  Target out;
  if (target == "*") {
    out.path = "*";
    return out;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!starts_without_case(target, scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?#"), target.size());
    out.authority = target.substr(0, end);
    if (out.authority.empty()) return invalid_request("", "request target: an absolute target needs a host");
    target.remove_prefix(end);
    break;
  }
  if (out.authority.empty() && !target.starts_with('/'))
    return invalid_request("", "request target: expected a path that begins with '/'");
  target = target.substr(0, target.find('#'));
  const size_t question = std::min(target.find('?'), target.size());
  VEDETTE_ASSIGN_OR_RETURN(out.path, decode(target.substr(0, question), false));
  for (const char c : out.path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return invalid_request("", "request target: control characters are not allowed in a path");
  if (out.path.empty()) out.path = "/";
  strip_trailing_slashes(out.path);
  VEDETTE_RETURN_IF_ERROR(parse_query(target.substr(std::min(question + 1, target.size())), out.query));
  strip_prefix(out, prefix);
  return out;
}

}  // namespace vedette::server::transport
