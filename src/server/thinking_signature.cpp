#include "server/thinking_signature.h"

#include <cstdint>

#include "base/utf8.h"

namespace vedette::server {
namespace {

constexpr std::string_view kName = "vedette";
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string thinking_signature(std::string_view hidden) {
  std::string out(kName);
  if (hidden.empty()) return out;
  out += ":";
  uint32_t bits = 0;
  int held = 0;
  for (const char c : hidden) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    for (held += 8; held >= 6; held -= 6) out += kAlphabet[bits >> (held - 6) & 63];
  }
  if (held > 0) out += kAlphabet[bits << (6 - held) & 63];
  return out;
}

std::string hidden_thinking(std::string_view signature) {
  if (!signature.starts_with(kName) || !signature.substr(kName.size()).starts_with(':')) return "";
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : signature.substr(kName.size() + 1)) {
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return "";
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(bits >> held & 255);
    }
  }
  return is_valid_utf8(out) ? out : "";
}

}  // namespace vedette::server
