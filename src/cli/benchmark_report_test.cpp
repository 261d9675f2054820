#include "cli/benchmark_report.h"

#include <gtest/gtest.h>

#include "cli/benchmark_chart.h"

namespace vedette::cli {
namespace {

using Kind = BenchmarkPoint::Kind;

TEST(Statistics, MedianLeastMostAndSpread) {
  const Summary odd = summarize(std::vector<double>{9, 1, 4});
  EXPECT_EQ(odd.median, 4);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 9);
  EXPECT_EQ(odd.spread(), 2);
  EXPECT_EQ(summarize(std::vector<double>{8, 1, 2, 4}).median, 3);
  const Summary one = summarize(std::vector<double>{7});
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.spread(), 0);
  EXPECT_EQ(summarize({}).median, 0);
  EXPECT_EQ(summarize({}).spread(), 0);
}

// One full and one sliding group; figures that are easy to follow.
BenchmarkReport small_report() {
  BenchmarkReport report;
  report.version = "1.0";
  report.target = "a/b";
  report.cpu = "Processor";
  report.kv_type = ops::DType::kF16;
  report.kv_groups = {{.window = 0, .n_layers = 1, .n_kv_heads = 1, .head_dim = 10, .value_dim = 10},
                      {.window = 8, .n_layers = 2, .n_kv_heads = 1, .head_dim = 10, .value_dim = 10}};
  report.weight_bytes = 2000;
  report.bytes_per_step = 1000;
  report.repetitions = 3;
  report.runs = {
      {.point = {.kind = Kind::kPrefill, .tokens = 100}, .steps = 2, .seconds = {1, 2, 4}},
      {.point = {.kind = Kind::kDecode, .tokens = 10, .depth = 100, .sequences = 4}, .steps = 10, .seconds = {2, 2, 4}},
      {.point = {.kind = Kind::kRows, .tokens = 1, .depth = 100}, .steps = 1, .seconds = {0.1, 0.1, 0.2}},
      {.point = {.kind = Kind::kRows, .tokens = 8, .depth = 100}, .steps = 1, .seconds = {0.15, 0.15, 0.2}}};
  return report;
}

TEST(BenchmarkReport, Names) {
  const BenchmarkReport report = small_report();
  EXPECT_EQ(report.runs[0].point.name(), "pp100");
  EXPECT_EQ(report.runs[1].point.name(), "tg10 x4 @100");
  EXPECT_EQ(report.runs[3].point.name(), "rows8 @100");
}

TEST(BenchmarkReport, SpeedsComeFromTokensAndSeconds) {
  const BenchmarkReport report = small_report();
  EXPECT_DOUBLE_EQ(report.runs[0].tok_s().median, 50);
  EXPECT_DOUBLE_EQ(report.runs[0].tok_s().most, 100);
  EXPECT_DOUBLE_EQ(report.runs[0].ms_per_step().median, 1000);
  EXPECT_DOUBLE_EQ(report.runs[1].tok_s().median, 20) << "40 tokens in 2 s";
  EXPECT_DOUBLE_EQ(report.runs[1].ms_per_step().median, 200);
  EXPECT_DOUBLE_EQ(*report.cost_over_one_row(report.runs[3]), 1.5);
  EXPECT_EQ(report.cost_over_one_row(report.runs[1]), std::nullopt);
}

TEST(BenchmarkReport, BytesCountWeightsOnceAndKvWithinWindows) {
  const BenchmarkReport report = small_report();
  // 2 bytes x (10 + 10): 40 a token in the full group, 80 in the sliding one.
  EXPECT_EQ(report.kv_bytes_per_token(), 120);
  EXPECT_EQ(report.kv_bytes(4), 4 * 120);
  EXPECT_EQ(report.kv_bytes(100), 100 * 40 + 8 * 80);
  EXPECT_EQ(report.bytes_read_per_step(report.runs[0]), std::nullopt);
  EXPECT_DOUBLE_EQ(*report.bytes_read_per_step(report.runs[1]), 1000 + 4 * (105 * 40 + 8 * 80));
  EXPECT_DOUBLE_EQ(*report.bytes_read_per_step(report.runs[3]), 1000 + 108 * 40 + 8 * 80);
}

TEST(BenchmarkReport, JsonHasWhatWasMeasuredAndNullForWhatIsNotKnown) {
  BenchmarkReport report = small_report();
  Json json = to_json(report);
  EXPECT_EQ(json.find("target")->as_string(), "a/b");
  EXPECT_TRUE(json.find("read_gb_per_sec")->is_null());
  const Json::Array runs = json.find("runs")->as_array();
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_TRUE(runs[0].find("gb_per_sec")->is_null());
  EXPECT_EQ(runs[0].find("decode_tok_s"), nullptr);
  EXPECT_DOUBLE_EQ(runs[1].find("decode_tok_s")->as_double(), 20);
  EXPECT_TRUE(runs[1].find("bandwidth_share")->is_null());
  EXPECT_EQ(runs[1].find("kv_bytes")->as_int(), 4 * report.kv_bytes(110));
  EXPECT_EQ(runs[3].find("rows")->as_int(), 8);
  EXPECT_DOUBLE_EQ(runs[3].find("cost_over_one_row")->as_double(), 1.5);
  report.read_bytes_s = 200'000;  // 20,360 bytes in 0.2 s are half of it and a little more
  EXPECT_DOUBLE_EQ(to_json(report).find("runs")->as_array()[1].find("bandwidth_share")->as_double(), 0.509);
}

TEST(BenchmarkReport, TextHasOneLinePerRunAndNoEmptyColumns) {
  BenchmarkReport report = small_report();
  const std::string text = to_text(report);
  EXPECT_NE(text.find("\nTEST"), std::string::npos) << text;
  EXPECT_NE(text.find("OVER 1 ROW"), std::string::npos) << text;
  EXPECT_EQ(text.find("SHARE"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntg10 x4 @100"), std::string::npos) << text;
  report.read_bytes_s = 200'000;
  report.runs.resize(2);
  EXPECT_EQ(to_text(report).find("OVER 1 ROW"), std::string::npos);
  EXPECT_NE(to_text(report).find("51 %"), std::string::npos);
}

TEST(BenchmarkChart, TicksAreRoundAndReachTheMost) {
  EXPECT_EQ(axis_ticks(1682), (std::vector<double>{0, 500, 1000, 1500, 2000}));
  EXPECT_EQ(axis_ticks(8), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(axis_ticks(0), (std::vector<double>{0, 1}));
  for (double most = 1e-3; most < 1e7; most *= 1.37) {
    const std::vector<double> ticks = axis_ticks(most);
    EXPECT_GE(ticks.back(), most);
    EXPECT_LT(ticks[ticks.size() - 2], most);
    EXPECT_GE(ticks.size(), 4u) << most;
    EXPECT_LE(ticks.size(), 9u) << most;
  }
}

TEST(BenchmarkChart, EverythingLiesWithinThePictureAndLongerBarsMeanMore) {
  BenchmarkReport report = small_report();
  report.target = std::string(500, 'm');
  const Drawing drawing = draw_chart(report);
  ASSERT_FALSE(drawing.rectangles.empty());
  for (const Drawing::Rectangle& box : drawing.rectangles) {
    EXPECT_GE(box.x, 0);
    EXPECT_GE(box.width, 0);
    EXPECT_LE(box.x + box.width, drawing.width);
    EXPECT_LE(box.y + box.height, drawing.height);
  }
  int titles = 0;
  for (const Drawing::Text& text : drawing.texts) {
    const double width = text_width(text.text, text.title);
    const double left = text.anchor == Drawing::Anchor::kStart    ? text.x
                        : text.anchor == Drawing::Anchor::kMiddle ? text.x - width / 2
                                                                  : text.x - width;
    EXPECT_GE(left, 0) << text.text;
    EXPECT_LE(left + width, drawing.width) << text.text;
    EXPECT_LE(text.y, drawing.height) << text.text;
    titles += text.text.starts_with("Prefill,") || text.text.starts_with("Decode,") || text.text.starts_with("Time of");
  }
  EXPECT_EQ(titles, 3);
  report.runs.resize(1);
  EXPECT_LT(draw_chart(report).height, drawing.height) << "no panel without runs";
  // The two bars of rows: 100 and 150 ms.
  std::vector<double> bars;
  for (const Drawing::Rectangle& box : drawing.rectangles)
    if (box.color == 0xC07840) bars.push_back(box.width);
  ASSERT_EQ(bars.size(), 2u);
  EXPECT_NEAR(bars[1] / bars[0], 1.5, 1e-9);
}

}  // namespace
}  // namespace vedette::cli
