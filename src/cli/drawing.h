// A picture of filled rectangles and lines of text, written as SVG or PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vedette::cli {

struct Drawing {
  using Color = uint32_t;  // 0xRRGGBB
  enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

  struct Rectangle {
    double x = 0, y = 0, width = 0, height = 0;
    Color color = 0;
  };
  struct Text {
    double x = 0, y = 0;  // y: the baseline
    std::string text;     // UTF-8
    Anchor anchor = Anchor::kStart;
    bool title = false;
    Color color = 0;
  };

  int width = 0, height = 0;  // the origin is at the top left; the ground is white
  std::vector<Rectangle> rectangles;
  std::vector<Text> texts;  // above all rectangles
};

std::string to_svg(const Drawing& drawing);
// At two pixels per unit. Text in a font of our own that has ASCII; other characters are shown as a box.
std::string to_png(const Drawing& drawing);

// Of text in a drawing, at most, in units.
double text_width(std::string_view text, bool title = false);

}  // namespace vedette::cli
