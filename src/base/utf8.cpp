#include "base/utf8.h"

#include <cstdint>

namespace vedette {
namespace {

struct Scan {
  size_t length;  // bytes consumed
  bool valid;     // a whole character
  bool cut;       // ill-formed only because the text ends
};

Scan scan(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  size_t need = 0;
  uint8_t low = 0x80, high = 0xbf;  // allowed range of the second byte
  if (lead >= 0xc2 && lead <= 0xdf) {
    need = 1;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    need = 2;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    need = 3;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return {1, false, false};
  }
  for (size_t i = 1; i <= need; ++i) {
    if (i >= text.size()) return {i, false, true};
    if (byte(i) < low || byte(i) > high) return {i, false, false};
    low = 0x80;
    high = 0xbf;
  }
  return {need + 1, true, false};
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Scan s = scan(bytes);
    if (!s.valid) return false;
    bytes.remove_prefix(s.length);
  }
  return true;
}

void append_repaired(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const Scan s = scan(bytes);
    if (s.valid)
      out.append(bytes.substr(0, s.length));
    else
      out.append("\xef\xbf\xbd");
    bytes.remove_prefix(s.length);
  }
}

std::string repair_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  append_repaired(bytes, out);
  return out;
}

size_t complete_utf8_prefix(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Scan s = scan(bytes.substr(at));
    if (s.cut) return at;
    at += s.length;
  }
  return at;
}

std::string without_controls(std::string_view text, LineBreaks breaks) {
  constexpr char kDigits[] = "0123456789abcdef";
  const std::string valid = repair_utf8(text);
  std::string out;
  out.reserve(valid.size());
  for (size_t i = 0; i < valid.size(); ++i) {
    auto byte = static_cast<unsigned char>(valid[i]);
    const bool line_break = byte == '\n' || byte == '\r';
    // U+0080 to U+009F, the second set of controls, is 0xC2 0x80 to 0xC2 0x9F.
    const bool second = byte == 0xc2 && i + 1 < valid.size() && static_cast<unsigned char>(valid[i + 1]) < 0xa0;
    if (second) byte = static_cast<unsigned char>(valid[++i]);
    if (line_break) {
      out += breaks == LineBreaks::kKeep ? valid[i] : ' ';
    } else if (second || byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += valid[i];
    }
  }
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  constexpr std::string_view kGap = " ... ";
  if (text.size() <= most || most <= kGap.size()) return std::string(text.substr(0, most));
  const size_t side = (most - kGap.size()) / 2;
  const std::string_view head = text.substr(0, complete_utf8_prefix(text.substr(0, side)));
  std::string_view tail = text.substr(text.size() - side);
  while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xc0) == 0x80) tail.remove_prefix(1);
  return std::string(head).append(kGap).append(tail);
}

}  // namespace vedette
