#include <fmt/format.h>

#include "base/utf8.h"
#include "cli/drawing.h"

namespace vedette::cli {
namespace {

// Text and attribute values; characters that XML 1.0 does not have become blanks.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : repair_utf8(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  }
  return out;
}

std::string_view anchor_name(Drawing::Anchor anchor) {
  return anchor == Drawing::Anchor::kStart ? "start" : anchor == Drawing::Anchor::kMiddle ? "middle" : "end";
}

}  // namespace

std::string to_svg(const Drawing& drawing) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      drawing.width, drawing.height);
  for (const Drawing::Rectangle& box : drawing.rectangles)
    out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"#{:06x}\"/>\n", box.x,
                       box.y, box.width, box.height, box.color);
  for (const Drawing::Text& text : drawing.texts)
    out += fmt::format(
        "<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{}\"{} text-anchor=\"{}\" fill=\"#{:06x}\">{}</text>\n", text.x,
        text.y, text.title ? 16 : 12, text.title ? " font-weight=\"bold\"" : "", anchor_name(text.anchor), text.color,
        escaped(text.text));
  return out + "</svg>\n";
}

}  // namespace vedette::cli
