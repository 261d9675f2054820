#include "weights/message_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace vedette::weights {
namespace {

constexpr size_t kMaxShown = 120;

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

std::string shown(std::string_view text) {
  text = text.substr(0, kMaxShown);
  std::string out = repair_utf8(text.substr(0, complete_utf8_prefix(text)));
  std::ranges::replace_if(out, is_control, '?');
  return out;
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, is_control);
}

}  // namespace vedette::weights
