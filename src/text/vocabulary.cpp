#include "text/vocabulary.h"

namespace vedette::text {

// Printable Latin-1 stands for itself; the other bytes, in order, are U+0100 and up.
int byte_of_character(char32_t character) {
  if ((character >= 0x21 && character <= 0x7e) || (character >= 0xa1 && character <= 0xac) ||
      (character >= 0xae && character <= 0xff))
    return static_cast<int>(character);
  if (character >= 0x100 && character <= 0x120) return static_cast<int>(character - 0x100);
  if (character >= 0x121 && character <= 0x142) return static_cast<int>(character - 0x121 + 0x7f);
  if (character == 0x143) return 0xad;
  return -1;
}

std::string byte_level_bytes(std::string_view entry) {
  std::string bytes;
  for (size_t i = 0; i < entry.size();) {
    const auto lead = static_cast<uint8_t>(entry[i]);
    char32_t character = lead;
    size_t length = 1;
    if (lead >= 0xc0 && lead < 0xe0 && i + 1 < entry.size()) {
      character = static_cast<char32_t>((lead & 0x1f) << 6 | (static_cast<uint8_t>(entry[i + 1]) & 0x3f));
      length = 2;
    } else if (lead >= 0x80) {
      return std::string(entry);
    }
    const int byte = byte_of_character(character);
    if (byte < 0) return std::string(entry);
    bytes += static_cast<char>(byte);
    i += length;
  }
  return bytes;
}

int byte_fallback_value(std::string_view entry) {
  if (entry.size() != 6 || !entry.starts_with("<0x") || entry.back() != '>') return -1;
  int value = 0;
  for (const char c : entry.substr(3, 2)) {
    int digit;
    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if (c >= 'A' && c <= 'F')
      digit = c - 'A' + 10;
    else if (c >= 'a' && c <= 'f')
      digit = c - 'a' + 10;
    else
      return -1;
    value = value * 16 + digit;
  }
  return value;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string out;
  for (size_t at = 0;;) {
    const size_t next = text.find(from, at);
    if (next == std::string_view::npos) {
      out += text.substr(at);
      return out;
    }
    out += text.substr(at, next - at);
    out += to;
    at = next + from.size();
  }
}

}  // namespace vedette::text
