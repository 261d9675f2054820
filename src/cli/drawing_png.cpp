// PNG (ISO/IEC 15948): 8-bit RGB without filters, compressed by zlib.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/utf8.h"
#include "cli/drawing.h"
#include "cli/drawing_font.h"

namespace vedette::cli {
namespace {

constexpr int kPixelsPerUnit = 2;
// Pixels of the picture for one of a glyph.
int glyph_scale(bool title) {
  return title ? 3 : 2;
}

// Bytes of a character of valid UTF-8, by its first.
size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

class Canvas {
 public:
  Canvas(int width, int height) : width_(width), height_(height), lines_(size(), 0xFF) {
    for (int y = 0; y < height_; ++y) lines_[line_bytes() * static_cast<size_t>(y)] = 0;  // no filter
  }

  // Pixels [left, right) x [top, bottom), as far as they lie in the picture.
  void fill(int left, int top, int right, int bottom, Drawing::Color color) {
    for (int y = std::max(top, 0); y < std::min(bottom, height_); ++y) {
      unsigned char* line = lines_.data() + line_bytes() * static_cast<size_t>(y) + 1;
      for (int x = std::max(left, 0); x < std::min(right, width_); ++x) {
        unsigned char* pixel = line + 3 * static_cast<size_t>(x);
        pixel[0] = static_cast<unsigned char>(color >> 16);
        pixel[1] = static_cast<unsigned char>(color >> 8);
        pixel[2] = static_cast<unsigned char>(color);
      }
    }
  }

  void draw(const Glyph& glyph, int left, int top, int scale, Drawing::Color color) {
    for (int row = 0; row < kGlyphHeight; ++row)
      for (int column = 0; column < kGlyphWidth; ++column)
        if ((glyph[static_cast<size_t>(row)] >> (kGlyphWidth - 1 - column)) & 1)
          fill(left + column * scale, top + row * scale, left + (column + 1) * scale, top + (row + 1) * scale, color);
  }

  const std::vector<unsigned char>& lines() const { return lines_; }

 private:
  size_t line_bytes() const { return 1 + 3 * static_cast<size_t>(width_); }
  size_t size() const { return line_bytes() * static_cast<size_t>(height_); }

  int width_, height_;
  std::vector<unsigned char> lines_;  // each a filter byte and RGB pixels
};

void draw_text(Canvas& canvas, const Drawing::Text& text) {
  const int scale = glyph_scale(text.title);
  const double width = text_width(text.text, text.title);
  const double left = text.anchor == Drawing::Anchor::kStart    ? text.x
                      : text.anchor == Drawing::Anchor::kMiddle ? text.x - width / 2
                                                                : text.x - width;
  int x = static_cast<int>(std::lround(left * kPixelsPerUnit));
  const int top = static_cast<int>(std::lround(text.y * kPixelsPerUnit)) - kGlyphHeight * scale;
  const std::string valid = repair_utf8(text.text);
  for (size_t at = 0; at < valid.size(); at += character_bytes(valid[at])) {
    const char c = valid[at];
    const bool known = c >= ' ' && c <= '~';
    const int lower = known && std::strchr(kDescenders, c) != nullptr ? 2 * scale : 0;
    canvas.draw(known ? kGlyphs[static_cast<size_t>(c - ' ')] : kUnknownGlyph, x, top + lower, scale, text.color);
    x += kGlyphAdvance * scale;
  }
}

void append_number(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

// Length, type, data and their checksum.
void append_chunk(std::string& out, const char* type, const std::string& data) {
  append_number(out, static_cast<uint32_t>(data.size()));
  const std::string body = type + data;
  out += body;
  append_number(out, static_cast<uint32_t>(
                         crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

std::string compressed(const std::vector<unsigned char>& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  // Cannot fail: there is room for the worst case.
  (void)compress2(reinterpret_cast<Bytef*>(out.data()), &size, bytes.data(), static_cast<uLong>(bytes.size()),
                  Z_BEST_COMPRESSION);
  out.resize(size);
  return out;
}

}  // namespace

double text_width(std::string_view text, bool title) {
  size_t characters = 0;
  const std::string valid = repair_utf8(text);
  for (size_t at = 0; at < valid.size(); at += character_bytes(valid[at])) ++characters;
  return static_cast<double>(characters * kGlyphAdvance * static_cast<size_t>(glyph_scale(title))) / kPixelsPerUnit;
}

std::string to_png(const Drawing& drawing) {
  const int width = drawing.width * kPixelsPerUnit, height = drawing.height * kPixelsPerUnit;
  Canvas canvas(width, height);
  const auto pixel = [](double units) { return static_cast<int>(std::lround(units * kPixelsPerUnit)); };
  for (const Drawing::Rectangle& box : drawing.rectangles)
    canvas.fill(pixel(box.x), pixel(box.y), std::max(pixel(box.x + box.width), pixel(box.x) + 1),
                std::max(pixel(box.y + box.height), pixel(box.y) + 1), box.color);
  for (const Drawing::Text& text : drawing.texts) draw_text(canvas, text);

  std::string header;
  append_number(header, static_cast<uint32_t>(width));
  append_number(header, static_cast<uint32_t>(height));
  header += std::string("\x08\x02\0\0\0", 5);  // 8 bits, RGB, deflate, filters by line, not interlaced
  std::string out = "\x89PNG\r\n\x1a\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", compressed(canvas.lines()));
  append_chunk(out, "IEND", "");
  return out;
}

}  // namespace vedette::cli
