#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

namespace vedette::engine {
namespace {

struct Outcome {
  std::string text;
  std::string stop;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.text << "\" stop \"" << outcome.stop << '"';
}

// Pushes the text cut at the bytes where `cuts` has a one.
Outcome run(const std::vector<std::string>& stops, const std::string& text, uint64_t cuts) {
  StopMatcher matcher(stops);
  std::string out, piece;
  for (size_t i = 0; i < text.size(); ++i) {
    piece += text[i];
    if (i + 1 < text.size() && (cuts >> (i % 64) & 1) == 0) continue;
    if (matcher.push(piece, out)) break;
    piece.clear();
  }
  matcher.finish(out);
  return {out, std::string(matcher.stop())};
}

// The definition: the shortest prefix of the text that ends with a stop; the longest stop there.
Outcome definition(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops)
      if (text.substr(0, end).ends_with(stop) && (!best || stop.size() > best->size())) best = &stop;
    if (best) return {text.substr(0, end - best->size()), *best};
  }
  return {text, ""};
}

TEST(StopMatcher, NoPrefixOfAStopIsShown) {
  StopMatcher matcher({"DEFGHIJ"});
  std::string out;
  EXPECT_FALSE(matcher.push("ABCDEF", out));
  EXPECT_EQ(out, "ABC");
  EXPECT_TRUE(matcher.push("GHIJKL", out));
  EXPECT_EQ(out, "ABC");
  EXPECT_EQ(matcher.stop(), "DEFGHIJ");
  EXPECT_EQ(run({"DEFGHIJ"}, "ABCDEFX", ~0ull), (Outcome{"ABCDEFX", ""}));
}

TEST(StopMatcher, HeldTextComesAsSoonAsItIsNoStop) {
  StopMatcher matcher({"abc"});
  std::string out;
  matcher.push("xab", out);
  EXPECT_EQ(out, "x");
  matcher.push("a", out);  // "aba": only the last a may still begin a stop
  EXPECT_EQ(out, "xab");
  matcher.push("z", out);
  EXPECT_EQ(out, "xabaz");
}

TEST(StopMatcher, TheTextBeforeAStopReachesTheClient) {
  EXPECT_EQ(run({"\n"}, "?\n", ~0ull), (Outcome{"?", "\n"}));
  EXPECT_EQ(run({"\n"}, "?\n", 0), (Outcome{"?", "\n"}));
}

TEST(StopMatcher, StopsThatNeverOccurChangeNothing) {
  const std::string text = "The quick brown fox jumps over the lazy dog.";
  for (const uint64_t cuts : {0ull, ~0ull, 0x5555555555555555ull})
    EXPECT_EQ(run({"###", "\n\n", "User:", "The quick brown cat"}, text, cuts), (Outcome{text, ""}));
}

TEST(StopMatcher, TextThatEndsInsideAStopIsFlushed) {
  EXPECT_EQ(run({"STOP"}, "go STO", ~0ull), (Outcome{"go STO", ""}));
}

TEST(StopMatcher, EarliestMatchWinsAndTheLongestOfEquals) {
  EXPECT_EQ(definition({"b", "abc"}, "xabc"), (Outcome{"xa", "b"}));
  EXPECT_EQ(run({"abc", "b"}, "xabc", 0), (Outcome{"xa", "b"}));
  EXPECT_EQ(run({"c", "abc", "bc"}, "xabc", 0), (Outcome{"x", "abc"}));
}

TEST(StopMatcher, WithoutStopsEverythingPasses) {
  EXPECT_EQ(run({}, "abc", 0), (Outcome{"abc", ""}));
}

TEST(StopMatcher, CharactersStayWhole) {
  StopMatcher matcher({"é!", "😀😀"});
  std::string out;
  for (const char* piece : {"d", "é", "á", "😀", "x", "😀", "é", "?"}) {
    matcher.push(piece, out);
    EXPECT_TRUE(is_valid_utf8(out)) << out;
  }
  matcher.finish(out);
  EXPECT_EQ(out, "déá😀x😀é?");
}

TEST(StopMatcher, EveryCutGivesTheDefinition) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto word = [&](size_t most) {
      std::string text;
      for (size_t n = random() % most + 1; n > 0; --n) text += static_cast<char>('a' + random() % 2);
      return text;
    };
    std::vector<std::string> stops;
    for (size_t n = random() % 4; n > 0; --n) stops.push_back(word(6));
    const std::string text = word(20);
    ASSERT_EQ(run(stops, text, random()), definition(stops, text)) << text;
  }
}

}  // namespace
}  // namespace vedette::engine
