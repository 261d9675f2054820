#include "cli/benchmark_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace vedette::cli {
namespace {

using Kind = BenchmarkPoint::Kind;
using Anchor = Drawing::Anchor;

constexpr int kWidth = 900;
constexpr double kMargin = 24, kRowHeight = 26, kBarHeight = 16, kValueWidth = 180;
constexpr Drawing::Color kInk = 0x222222, kFaint = 0x666666, kGrid = 0xDDDDDD, kAxis = 0x888888, kWhisker = 0x111111;

struct Panel {
  Kind kind;
  const char* title;
  Drawing::Color color;
};
constexpr Panel kPanels[] = {
    {Kind::kPrefill, "Prefill, tokens per second", 0x4878A8},
    {Kind::kDecode, "Decode, tokens per second (all sequences together)", 0x5A9A5A},
    {Kind::kRows, "Time of a step with so many rows, ms", 0xC07840},
};

struct Bar {
  std::string label, note;
  Summary value;
};

std::vector<Bar> bars_of(const BenchmarkReport& report, Kind kind) {
  std::vector<Bar> bars;
  for (const BenchmarkRun& run : report.runs) {
    if (run.point.kind != kind) continue;
    const Summary value = kind == Kind::kRows ? run.ms_per_step() : run.tok_s();
    std::string note = fmt::format("{:.{}f}", value.median, kind == Kind::kRows ? 2 : 1);
    if (const auto cost = report.cost_over_one_row(run)) note += fmt::format(" ({:.2f} x one row)", *cost);
    bars.push_back({run.point.name(), std::move(note), value});
  }
  return bars;
}

// Draws one panel below `top`; returns where it ends.
double draw_panel(Drawing& drawing, const Panel& panel, const std::vector<Bar>& bars, double top) {
  double label_width = 0, most = 0;
  for (const Bar& bar : bars) {
    label_width = std::max(label_width, text_width(bar.label));
    most = std::max(most, bar.value.most);
  }
  const std::vector<double> ticks = axis_ticks(most);
  const double left = kMargin + label_width + 12, right = kWidth - kMargin - kValueWidth;
  const auto x_of = [&](double value) { return left + (right - left) * value / ticks.back(); };
  drawing.texts.push_back({kMargin, top + 14, panel.title, Anchor::kStart, false, kInk});
  const double first = top + 24, bottom = first + kRowHeight * static_cast<double>(bars.size());
  for (const double tick : ticks) {
    drawing.rectangles.push_back({x_of(tick), first, 1, bottom - first, tick == 0 ? kAxis : kGrid});
    drawing.texts.push_back({x_of(tick), bottom + 15, fmt::format("{:g}", tick), Anchor::kMiddle, false, kFaint});
  }
  double y = first;
  for (const Bar& bar : bars) {
    const double middle = y + kRowHeight / 2;
    drawing.rectangles.push_back(
        {left, middle - kBarHeight / 2, x_of(bar.value.median) - left, kBarHeight, panel.color});
    const double from = x_of(bar.value.least), to = x_of(bar.value.most);
    drawing.rectangles.push_back({from, middle - 0.5, to - from, 1, kWhisker});
    for (const double end : {from, to}) drawing.rectangles.push_back({end, middle - 4, 1, 8, kWhisker});
    drawing.texts.push_back({left - 8, middle + 4, bar.label, Anchor::kEnd, false, kInk});
    drawing.texts.push_back(
        {std::max(to, x_of(bar.value.median)) + 8, middle + 4, bar.note, Anchor::kStart, false, kInk});
    y += kRowHeight;
  }
  drawing.rectangles.push_back({left, bottom, right - left, 1, kAxis});
  return bottom + 40;
}

// As much of a text as fits the picture's width.
std::string fitting(std::string text, bool title) {
  while (text_width(text, title) > kWidth - 2 * kMargin && text.size() > 4) {
    text.resize(text.size() - 4);
    text += "...";
  }
  return text;
}

}  // namespace

std::vector<double> axis_ticks(double most) {
  if (!(most > 0) || !std::isfinite(most)) return {0, 1};
  const double decade = std::pow(10, std::floor(std::log10(most / 8)));
  double step = decade;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * decade;
    if (most <= 8 * step) break;
  }
  std::vector<double> ticks = {0};
  while (ticks.back() < most) ticks.push_back(static_cast<double>(ticks.size()) * step);
  return ticks;
}

Drawing draw_chart(const BenchmarkReport& report) {
  Drawing drawing;
  drawing.width = kWidth;
  drawing.texts.push_back({kMargin, 34, fitting(report.target, true), Anchor::kStart, true, kInk});
  const std::string machine =
      fmt::format("{}, {}, {} threads, compute {}, K/V {}", report.cpu.empty() ? "unknown processor" : report.cpu,
                  report.isa, report.threads, report.compute, ops::to_string(report.kv_type));
  const std::string runs =
      fmt::format("vedette {}, {}; bars: medians of {}, thin lines: least to most; xN: sequences, @N: tokens before",
                  report.version, report.date, report.repetitions);
  drawing.texts.push_back({kMargin, 56, fitting(machine, false), Anchor::kStart, false, kFaint});
  drawing.texts.push_back({kMargin, 74, fitting(runs, false), Anchor::kStart, false, kFaint});
  double top = 100;
  for (const Panel& panel : kPanels) {
    const std::vector<Bar> bars = bars_of(report, panel.kind);
    if (!bars.empty()) top = draw_panel(drawing, panel, bars, top);
  }
  drawing.height = static_cast<int>(std::ceil(top));
  return drawing;
}

}  // namespace vedette::cli
