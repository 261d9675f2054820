#include "cli/drawing.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

namespace vedette::cli {
namespace {

Drawing small_drawing() {
  Drawing drawing;
  drawing.width = 20;
  drawing.height = 10;
  drawing.rectangles.push_back({2, 1, 3, 2, 0x123456});
  return drawing;
}

uint32_t number_at(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

// A PNG of ours, read by its own rules: size, and RGB of each pixel.
struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<unsigned char> lines;
  uint32_t pixel(uint32_t x, uint32_t y) const {
    const size_t at = y * (1 + 3 * size_t{width}) + 1 + 3 * size_t{x};
    return static_cast<uint32_t>(lines.at(at)) << 16 | static_cast<uint32_t>(lines.at(at + 1)) << 8 | lines.at(at + 2);
  }
  size_t count(uint32_t color) const {
    size_t found = 0;
    for (uint32_t y = 0; y < height; ++y)
      for (uint32_t x = 0; x < width; ++x) found += pixel(x, y) == color;
    return found;
  }
};

Picture read_png(const std::string& png) {
  Picture picture;
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  std::string types, packed;
  for (size_t at = 8; at < png.size();) {
    const uint32_t size = number_at(png, at);
    const std::string body = png.substr(at + 4, 4 + size);
    EXPECT_EQ(number_at(png, at + 8 + size),
              crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
    types += body.substr(0, 4) + " ";
    if (body.starts_with("IHDR")) {
      picture.width = number_at(body, 4);
      picture.height = number_at(body, 8);
      EXPECT_EQ(body.substr(12), std::string("\x08\x02\0\0\0", 5));
    }
    if (body.starts_with("IDAT")) packed = body.substr(4);
    at += 12 + size;
  }
  EXPECT_EQ(types, "IHDR IDAT IEND ");
  picture.lines.resize(picture.height * (1 + 3 * size_t{picture.width}));
  uLongf size = picture.lines.size();
  EXPECT_EQ(uncompress(picture.lines.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  EXPECT_EQ(size, picture.lines.size());
  for (uint32_t y = 0; y < picture.height; ++y) EXPECT_EQ(picture.lines[y * (1 + 3 * size_t{picture.width})], 0);
  return picture;
}

TEST(Drawing, SvgHoldsRectanglesAndTexts) {
  Drawing drawing = small_drawing();
  drawing.texts.push_back({1, 9, "a<b & \"c\"\x01", Drawing::Anchor::kEnd, false, 0xFF});
  const std::string svg = to_svg(drawing);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"20\" height=\"10\"")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("<rect x=\"2.00\" y=\"1.00\" width=\"3.00\" height=\"2.00\" fill=\"#123456\"/>"),
            std::string::npos);
  EXPECT_NE(svg.find("text-anchor=\"end\" fill=\"#0000ff\">a&lt;b &amp; &quot;c&quot; </text>"), std::string::npos)
      << svg;
}

TEST(Drawing, SvgIsUtf8WhateverTheText) {
  Drawing drawing = small_drawing();
  drawing.texts.push_back({.text = "caf\xC3\xA9 \xFF"});
  EXPECT_NE(to_svg(drawing).find(">caf\xC3\xA9 \xEF\xBF\xBD</text>"), std::string::npos);
}

TEST(Drawing, PngHasTheRectanglesPixels) {
  const Picture picture = read_png(to_png(small_drawing()));
  EXPECT_EQ(picture.width, 40u);
  EXPECT_EQ(picture.height, 20u);
  EXPECT_EQ(picture.count(0x123456), 6u * 4);
  EXPECT_EQ(picture.count(0xFFFFFF), 40u * 20 - 6 * 4);
  for (const auto& [x, y] : {std::pair(4u, 2u), std::pair(9u, 5u)}) EXPECT_EQ(picture.pixel(x, y), 0x123456u);
  for (const auto& [x, y] : {std::pair(3u, 2u), std::pair(10u, 5u), std::pair(4u, 6u)})
    EXPECT_EQ(picture.pixel(x, y), 0xFFFFFFu);
}

TEST(Drawing, PngHasTheTextWhereItWasAsked) {
  for (const auto anchor : {Drawing::Anchor::kStart, Drawing::Anchor::kMiddle, Drawing::Anchor::kEnd}) {
    Drawing drawing;
    drawing.width = drawing.height = 40;
    drawing.texts.push_back({20, 30, "|", anchor, false, 0});
    const Picture picture = read_png(to_png(drawing));
    EXPECT_EQ(picture.count(0), 2u * 14) << "a stroke of two pixels, seven rows high";
    const uint32_t left = anchor == Drawing::Anchor::kStart ? 40 : anchor == Drawing::Anchor::kMiddle ? 34 : 28;
    EXPECT_EQ(picture.pixel(left + 4, 59), 0u) << "the third column, just above the baseline";
    EXPECT_EQ(picture.pixel(left + 4, 60), 0xFFFFFFu);
    EXPECT_EQ(picture.pixel(left + 3, 59), 0xFFFFFFu);
  }
}

TEST(Drawing, WhatLiesOutsideOrHasNoGlyphDoesNoHarm) {
  Drawing drawing = small_drawing();
  drawing.rectangles.push_back({-5, -5, 8, 100, 0xFF});
  drawing.rectangles.push_back({19, 9, 1e3, 1e3, 0xFF00});
  drawing.texts.push_back({-4, 2, "left \xC3\xA9\xFF and far too long", Drawing::Anchor::kStart, true, 0});
  const Picture picture = read_png(to_png(drawing));
  EXPECT_EQ(picture.pixel(0, 19), 0xFFu);
  EXPECT_EQ(picture.pixel(39, 19), 0xFF00u);
  EXPECT_EQ(text_width("\xC3\xA9"), text_width("e"));
}

TEST(Drawing, EveryPrintableCharacterButTheBlankHasItsOwnGlyph) {
  std::vector<std::vector<unsigned char>> seen;
  for (char c = ' '; c <= '~'; ++c) {
    Drawing drawing;
    drawing.width = drawing.height = 20;
    drawing.texts.push_back({2, 12, std::string(1, c)});
    const Picture picture = read_png(to_png(drawing));
    EXPECT_EQ(picture.count(0) == 0, c == ' ') << c;
    EXPECT_EQ(std::ranges::find(seen, picture.lines), seen.end()) << c;
    seen.push_back(picture.lines);
  }
}

}  // namespace
}  // namespace vedette::cli
