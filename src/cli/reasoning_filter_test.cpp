#include "cli/reasoning_filter.h"

#include <gtest/gtest.h>

namespace vedette::cli {
namespace {

struct Split {
  std::string reasoning, answer;
  bool operator==(const Split&) const = default;
};

void add(Split& split, const std::vector<ReplyPart>& parts) {
  for (const ReplyPart& part : parts) (part.reasoning ? split.reasoning : split.answer) += part.text;
}

Split run(std::string_view prompt, const std::vector<std::string_view>& pieces) {
  ReasoningFilter filter(prompt);
  Split split;
  for (std::string_view piece : pieces) add(split, filter.push(piece));
  add(split, filter.finish());
  return split;
}

// The same result whole, and cut in two and three at every place.
void expect_at_every_split(std::string_view prompt, std::string_view text, const Split& expected) {
  EXPECT_EQ(run(prompt, {text}), expected) << text;
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j)
      ASSERT_EQ(run(prompt, {text.substr(0, i), text.substr(i, j - i), text.substr(j)}), expected)
          << text << " cut at " << i << " and " << j;
  }
}

TEST(ReasoningFilter, SplitsAtTheMarks) {
  expect_at_every_split("", "<think>\nhm, 2 < 3\n</think>\n\nYes.", {"hm, 2 < 3\n", "Yes."});
  expect_at_every_split("", "[THINK]a[/THINK]b", {"a", "b"});
}

TEST(ReasoningFilter, TheTemplateMayHaveOpenedTheReasoning) {
  expect_at_every_split("...<|assistant|><think>\n", "why</think> so", {"why", "so"});
  expect_at_every_split("<think>", "no end", {"no end", ""});
}

TEST(ReasoningFilter, PlainRepliesPassWhole) {
  expect_at_every_split("hello", "  just text, <think> later </think>", {"", "  just text, <think> later </think>"});
  expect_at_every_split("", "<thin ice", {"", "<thin ice"});
  expect_at_every_split("", "<think", {"", "<think"});
  expect_at_every_split("", "", {"", ""});
}

TEST(ReasoningFilter, AnEmptyReasoningLeavesTheAnswer) {
  expect_at_every_split("", "<think>\n\n</think>\n\nParis", {"", "Paris"});
}

TEST(ReasoningFilter, AnswerTextIsNotHeldBack) {
  ReasoningFilter filter;
  EXPECT_EQ(filter.push("a"), (std::vector<ReplyPart>{{false, "a"}}));
  EXPECT_EQ(filter.push("<think>"), (std::vector<ReplyPart>{{false, "<think>"}}));
}

}  // namespace
}  // namespace vedette::cli
