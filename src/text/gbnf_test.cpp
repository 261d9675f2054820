#include "text/gbnf.h"

#include <gtest/gtest.h>

#include "text/grammar_test_vocabulary.h"

namespace vedette::text {
namespace {

bool gbnf(const std::string& grammar, std::string_view text) {
  return matches(GrammarKind::kGbnf, grammar, text);
}

TEST(Gbnf, LiteralsClassesAndRepetitions) {
  EXPECT_TRUE(gbnf(R"(root ::= "yes" | "no")", "no"));
  EXPECT_FALSE(gbnf(R"(root ::= "yes" | "no")", "maybe"));
  EXPECT_TRUE(gbnf("root ::= [a-c]+ [^x-z] [0-9]? \"!\"*", "abcq7!!"));
  EXPECT_FALSE(gbnf("root ::= [a-c]+ [^x-z]", "ax"));
  for (const auto& [text, fits] : {std::pair{"aa", false}, {"aab", true}, {"aabb", true}, {"aabbb", false}})
    EXPECT_EQ(gbnf(R"(root ::= "a"{2} "b"{1,2})", text), fits) << text;
  EXPECT_TRUE(gbnf(R"(root ::= "a"{2,})", "aaaa"));
  EXPECT_FALSE(gbnf(R"(root ::= "a"{2,})", "a"));
  EXPECT_TRUE(gbnf(R"(root ::= "a"{,2} "b"{0})", ""));
  EXPECT_TRUE(gbnf("root ::= ( \"a\" | ( \"b\" \"c\" )+ )*", "abcbca"));
  EXPECT_TRUE(gbnf("root ::= .", "\xc3\xa9"));
  EXPECT_TRUE(gbnf("root ::= \"\" | \"x\"", ""));
  EXPECT_TRUE(gbnf("root ::= | \"x\"", "x"));
}

TEST(Gbnf, EscapesAndUnicode) {
  EXPECT_TRUE(gbnf(R"(root ::= "\x41\u00e9\U0001F600\n\t\\\"\[\]")", "A\xc3\xa9\xf0\x9f\x98\x80\n\t\\\"[]"));
  EXPECT_TRUE(gbnf("root ::= [\xce\xb1-\xcf\x89]+", "\xce\xb2\xcf\x83"));
  EXPECT_TRUE(gbnf(R"(root ::= [\]\-\\^]+)", "]-\\^"));
  EXPECT_TRUE(gbnf("root ::= [+-]", "-"));
  EXPECT_TRUE(gbnf("root ::= [/\\[\"]+", "/[\""));
}

TEST(Gbnf, CommentsAndLines) {
  const std::string grammar =
      "# what it is\nroot ::= first # the first\n  | second\n\nfirst ::=\n  \"a\" (\n \"b\" # inside\n)\r\nsecond ::= "
      "\"c\"";
  EXPECT_TRUE(gbnf(grammar, "ab"));
  EXPECT_TRUE(gbnf(grammar, "c"));
}

// Neighbours that begin alike: the longest match of one must not hide the other.
TEST(Gbnf, NeighboursThatOverlap) {
  EXPECT_TRUE(gbnf("root ::= [a-z]+ \"abc\" | \"abx\"", "abx"));
  EXPECT_TRUE(gbnf("root ::= [a-z]+ \"abc\" | \"abx\"", "zzabc"));
  EXPECT_TRUE(gbnf("root ::= ident \"=\" ident\nident ::= [a-z] [a-z0-9]*", "a1=b"));
  EXPECT_TRUE(gbnf("root ::= \"(\" root \")\" | [a-z]* \"ab\" [a-z]", "((xabq))"));
}

TEST(Gbnf, RecursiveGrammars) {
  const std::string json =
      R"(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)";
  EXPECT_TRUE(gbnf(json, R"({"a": [1, -2.5e3, "x\n\u00e9", {"b": null}], "c": true})"));
  EXPECT_TRUE(gbnf(json, "{}"));
  EXPECT_FALSE(gbnf(json, R"({"a": })"));
  EXPECT_FALSE(gbnf(json, R"([1])"));
  const std::string sums = "root ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" root \")\"";
  EXPECT_TRUE(gbnf(sums, "1+(22+3)+4"));
  EXPECT_FALSE(gbnf(sums, "1+"));
}

TEST(Gbnf, TokenReferences) {
  const auto constraint = compiled(GrammarKind::kGbnf, "root ::= \"a\" <|end|> \"b\" <[256]>");
  ASSERT_NE(constraint, nullptr);
  EXPECT_EQ(feed(*constraint, "a"), 1u);
  ASSERT_TRUE(constraint->accept(kByteEnd).ok());
  EXPECT_EQ(feed(*constraint, "b"), 1u);
  EXPECT_TRUE(allows(*constraint, kByteEnd));
}

TEST(Gbnf, ErrorsNameLineAndColumn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"root ::= [a", "line 1, column 10: the character class is not closed"},
      {"root ::= \"a\n", "line 1, column 10: the string is not closed"},
      {"root ::= other", "line 1, column 10: rule 'other' is not defined"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule 'root' is defined twice"},
      {"root ::= \"a\"\n  = \"b\"", "line 2, column 3: expected the name of a rule"},
      {"root := \"a\"", "line 1, column 6: expected '::='"},
      {"root ::= (\"a\"", "line 1, column 14: expected ')', found the end"},
      {"root ::= \"\\q\"", "line 1, column 11: unknown escape"},
      {"root ::= \"\\xg0\"", "line 1, column 13: expected 2 hexadecimal digits"},
      {"root ::= \"\\ud800\"", "line 1, column 11: no such character"},
      {"root ::= [z-a]", "line 1, column 11: the range of characters is empty"},
      {"root ::= []", "line 1, column 10: the character class is empty"},
      {"root ::= \"a\"{3,2}", "line 1, column 13: the repetition's range is empty"},
      {"root ::= \"a\"{99999999999}", "line 1, column 14: repetitions above"},
      {"root ::= !<a>", "line 1, column 10: negated"},
      {"root ::= ]", "line 1, column 10: expected a line break, found ']'"},
      {"a ::= \"x\"", "expected a rule named 'root'"},
      {"", "expected a rule named 'root'"},
      {"root ::= \"\xff\"", "expected UTF-8"},
  };
  for (const auto& [grammar, message] : cases) {
    const auto lark = lark_from_gbnf(grammar);
    ASSERT_FALSE(lark.ok()) << grammar;
    EXPECT_NE(lark.error().message.find(message), std::string::npos) << lark.error().message;
  }
}

TEST(Gbnf, DepthAndSizeAreBounded) {
  EXPECT_FALSE(lark_from_gbnf("root ::= " + std::string(100000, '(')).ok());
  EXPECT_FALSE(lark_from_gbnf("root ::= \"a\"" + std::string(100000, '*')).ok());
  EXPECT_FALSE(lark_from_gbnf(std::string(2 << 20, ' ')).ok());
  std::string chain = "root ::= a0\n";
  for (int i = 0; i < 4000; ++i) chain += fmt::format("a{} ::= a{} \"x\"\n", i, i + 1);
  const auto constraint = byte_compiler().compile({GrammarKind::kGbnf, chain + "a4000 ::= \"y\""});
  if (constraint.ok()) {
    EXPECT_EQ(feed(**constraint, "yxx"), 3u);
  }
}

}  // namespace
}  // namespace vedette::text
