#include <gtest/gtest.h>

#include "text/grammar_test_vocabulary.h"

namespace vedette::text {
namespace {

std::vector<int32_t> ids(std::string_view text) {
  return {text.begin(), text.end()};
}

std::unique_ptr<sampling::Constraint> number() {
  return compiled(GrammarKind::kJsonSchema, R"({"type":"integer"})");
}

std::unique_ptr<sampling::Constraint> gated(ReasoningGate gate,
                                            std::unique_ptr<sampling::Constraint> inner = number()) {
  gate.close = ids("</t>");
  return gate_reasoning(std::move(gate), std::move(inner));
}

TEST(ReasoningGate, WithoutReasoningTheAnswerStandsAlone) {
  EXPECT_EQ(gated({}, nullptr), nullptr);
  EXPECT_EQ(gated({.starts_inside = true}, nullptr), nullptr);  // free text, and nothing to count
  const auto gate = gated({});
  EXPECT_FALSE(allows(*gate, 'x'));
  EXPECT_EQ(feed(*gate, "12"), 2u);
}

TEST(ReasoningGate, FreeTextUntilTheMark) {
  const auto gate = gated({.starts_inside = true, .end = {kByteEnd}});
  EXPECT_FALSE(allows(*gate, kByteEnd)) << "an answer is owed";
  EXPECT_EQ(feed(*gate, "so <</t </t>"), 12u);
  EXPECT_FALSE(gate->complete());
  EXPECT_FALSE(allows(*gate, 'x'));
  EXPECT_EQ(feed(*gate, "42"), 2u);
  EXPECT_TRUE(may_end(*gate));
  ASSERT_TRUE(gate->accept(kByteEnd).ok());
  EXPECT_TRUE(gate->complete());
}

TEST(ReasoningGate, EndedFromOutsideAtAnyToken) {
  const std::string thought = "so </t/ <";
  for (size_t at = 0; at <= thought.size(); ++at) {
    const auto ended = std::make_shared<std::atomic<bool>>(false);
    const auto gate = gated({.starts_inside = true, .ended = ended}, at % 2 == 0 ? number() : nullptr);
    ASSERT_NE(gate, nullptr);
    EXPECT_EQ(feed(*gate, thought.substr(0, at)), at);
    EXPECT_TRUE(allows(*gate, 'x'));
    // What was drawn before the word came still counts, and the word comes at the next token.
    *ended = true;
    ASSERT_TRUE(gate->accept('y').ok()) << at;
    EXPECT_FALSE(allows(*gate, 'x'));
    const auto clone = gate->clone();
    EXPECT_EQ(feed(*gate, "</t>7"), 5u) << at;
    EXPECT_EQ(feed(*clone, "</t>7"), 5u) << at;
    EXPECT_EQ(allows(*gate, 'x'), at % 2 != 0);
  }
}

TEST(ReasoningGate, TheReplyMayOpenABlockOrAnswer) {
  const ReasoningGate may_open{.may_open = true, .open = {kByteEnd}};
  const auto thinks = gated(may_open);
  EXPECT_TRUE(allows(*thinks, kByteEnd));
  EXPECT_TRUE(allows(*thinks, '4'));
  EXPECT_FALSE(allows(*thinks, 'x'));
  const auto answers = thinks->clone();
  ASSERT_TRUE(thinks->accept(kByteEnd).ok());
  EXPECT_EQ(feed(*thinks, "hm</t>7"), 7u);
  EXPECT_TRUE(may_end(*thinks));
  EXPECT_EQ(feed(*answers, "7"), 1u);
  EXPECT_TRUE(may_end(*answers));
  EXPECT_FALSE(allows(*answers, 'h'));
}

TEST(ReasoningGate, AnOpeningMarkOfSeveralTokens) {
  const auto inner = [] { return compiled(GrammarKind::kRegex, "<(tag|t2)>"); };
  const ReasoningGate may_open{.may_open = true, .open = ids("<t>")};
  for (const auto& [text, accepted] :
       {std::pair{"<t>any</t><t2>", 14}, {"<tag>", 5}, {"<t2>", 4}, {"<x", 1}, {"<tx", 2}}) {
    const auto gate = gated(may_open, inner());
    EXPECT_EQ(feed(*gate, text), static_cast<size_t>(accepted)) << text;
  }
  // An answer that cannot begin as the mark does is no way back out of it.
  const auto gate = gated(may_open);
  EXPECT_EQ(feed(*gate, "<1"), 1u);
  EXPECT_EQ(feed(*gate, "t>1</t>1"), 8u);
}

TEST(ReasoningGate, TheBudgetForcesTheMark) {
  const auto gate = gated({.starts_inside = true, .budget = 3});
  EXPECT_EQ(feed(*gate, "abc"), 3u);
  for (const char c : std::string_view("</t>")) {
    EXPECT_FALSE(allows(*gate, 'd'));
    EXPECT_TRUE(allows(*gate, c));
    ASSERT_TRUE(gate->accept(c).ok());
  }
  EXPECT_EQ(feed(*gate, "5"), 1u);
  EXPECT_TRUE(may_end(*gate));

  const auto half_way = gated({.starts_inside = true, .budget = 3});
  EXPECT_EQ(feed(*half_way, "a</t>5"), 6u) << "the mark's own beginning is not written twice";
  const auto none = gated({.starts_inside = true, .budget = 0});
  EXPECT_EQ(feed(*none, "</t>5"), 5u);
  EXPECT_FALSE(allows(*gated({.starts_inside = true, .budget = 0}), 'a'));
  const auto opened = gated({.may_open = true, .open = {kByteEnd}, .budget = 0});
  ASSERT_TRUE(opened->accept(kByteEnd).ok());
  EXPECT_EQ(feed(*opened, "</t>5"), 5u);
  const auto wrong = gated({.starts_inside = true, .budget = 0})->accept('a');
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, ErrorKind::kInternal);
}

TEST(ReasoningGate, ABudgetWithoutAGrammar) {
  const auto gate = gated({.starts_inside = true, .budget = 2, .end = {kByteEnd}}, nullptr);
  EXPECT_TRUE(allows(*gate, kByteEnd)) << "no answer is owed";
  EXPECT_EQ(feed(*gate, "ab</t>anything"), 14u);
  EXPECT_FALSE(gate->complete());
}

TEST(ReasoningGate, AMarkSpelledByOtherTokens) {
  ReasoningGate gate{.starts_inside = true, .tokenizer = &byte_tokenizer(), .close_text = "<|end|>"};
  gate.close = {kByteEnd};
  const auto spelled = gate_reasoning(gate, number());
  EXPECT_EQ(feed(*spelled, "a<|end|>x"), 8u);
  const auto token = gate_reasoning(gate, number());
  ASSERT_TRUE(token->accept(kByteEnd).ok());
  EXPECT_EQ(feed(*token, "x"), 0u);
}

TEST(ReasoningGate, ACloneInsideTheMarkGoesItsOwnWay) {
  const auto gate = gated({.starts_inside = true, .budget = 6});
  EXPECT_EQ(feed(*gate, "a</"), 3u);
  const auto copy = gate->clone();
  EXPECT_EQ(feed(*gate, "t>9"), 3u);
  EXPECT_EQ(feed(*copy, "xyz"), 3u);
  EXPECT_FALSE(allows(*copy, 'x'));
  EXPECT_EQ(feed(*copy, "</t>9"), 5u);
}

}  // namespace
}  // namespace vedette::text
