#include "text/grammar.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "text/grammar_test_vocabulary.h"

namespace vedette::text {
namespace {

constexpr auto kJson = GrammarKind::kJsonSchema;

TEST(Grammar, JsonSchemaIsEnforced) {
  const std::string schema =
      R"({"type":"object","properties":{"a":{"type":"integer","minimum":3},"b":{"enum":["x","y"]}},)"
      R"("required":["a"],"additionalProperties":false})";
  EXPECT_TRUE(matches(kJson, schema, R"({"a":3})"));
  EXPECT_TRUE(matches(kJson, schema, R"({"a": 12, "b": "y"})"));
  EXPECT_TRUE(matches(kJson, schema, "{\n  \"a\": 12\n}"));
  EXPECT_FALSE(matches(kJson, schema, R"({"a":2})"));
  EXPECT_FALSE(matches(kJson, schema, R"({"b":"x"})"));
  EXPECT_FALSE(matches(kJson, schema, R"({"a":3,"c":1})"));
  EXPECT_FALSE(matches(kJson, schema, R"({"a":3,"b":"z"})"));
  EXPECT_FALSE(matches(kJson, schema, R"({"a":3)"));
}

TEST(Grammar, WhiteSpaceIsBounded) {
  EXPECT_FALSE(matches(kJson, R"({"type":"array"})", "[  1]"));
  EXPECT_FALSE(matches(kJson, R"({"type":"array"})", "[\n\n1]"));
  EXPECT_FALSE(matches(kJson, R"({"type":"array"})", " [1]"));
  EXPECT_FALSE(matches(kJson, R"({"type":"array"})", "[1] "));
  EXPECT_TRUE(matches(kJson, "true", "[\n  1,\n  {\"a\": null}\n]"));
}

TEST(Grammar, RecursiveReferencesNest) {
  const std::string tree =
      R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},)"
      R"("next":{"$ref":"#/$defs/node"}},"required":["v"],"additionalProperties":false}}})";
  EXPECT_TRUE(matches(kJson, tree, R"({"v":1,"next":{"v":2,"next":{"v":3}}})"));
  EXPECT_FALSE(matches(kJson, tree, R"({"v":1,"next":{"next":{"v":3}}})"));
  EXPECT_TRUE(matches(kJson, R"({"type":"array","items":{"$ref":"#"}})", "[[],[[]]]"));
}

TEST(Grammar, EveryKeywordThatCannotBeEnforcedIsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"not":{"type":"string"}})", "'not'"},
      {R"({"if":{"type":"string"},"then":{"minLength":1}})", "'if'"},
      {R"({"type":"array","contains":{"type":"string"}})", "'contains'"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems'"},
      {R"({"propertyNames":{"maxLength":3}})", "'propertyNames'"},
      {R"({"dependentRequired":{"a":["b"]}})", "'dependentRequired'"},
      {R"({"dependencies":{"a":["b"]}})", "'dependencies'"},
      {R"({"unevaluatedProperties":false})", "'unevaluatedProperties'"},
      {R"({"$dynamicRef":"#x"})", "'$dynamicRef'"},
      {R"({"contentEncoding":"base64"})", "'contentEncoding'"},
      {R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", "oneOf"},
      {R"({"type":"string","format":"colour"})", "'format'"},
      {R"({"type":"string","format":"unknown"})", "'format'"},
      {R"({"format":"regex"})", "'format'"},
      {R"({"type":"integer","format":"colour"})", "'format'"},
      {R"j({"pattern":"(?=a)"})j", "'pattern'"},
      {R"({"pattern":"a\\bc"})", "'pattern'"},
      {R"({"type":"nonsense"})", "'type'"},
      {R"({"minProperties":2})", "'minProperties'"},
      {R"({"minLength":-1})", "'minLength'"},
      {R"({"required":"a"})", "'required'"},
      {R"({"multipleOf":0})", "'multipleOf'"},
      {R"({"const":9007199254740993})", "'const'"},
      {R"({"$ref":"http://example.com/other.json"})", "$ref"},
      {R"({"$ref":"#/nowhere"})", "$ref"},
      {R"({"x-guidance":{"lenient":true}})", "'x-guidance'"},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","contains":{}})", "'contains'"},
      {"false", "'schema'"},
  };
  for (const auto& [schema, name] : cases)
    EXPECT_NE(error_of(kJson, schema).find(name), std::string::npos) << schema << ": " << error_of(kJson, schema);
  EXPECT_NE(error_of(kJson, R"({"properties":{"a/b":{"items":{"not":{}}}}})").find("#/properties/a~1b/items"),
            std::string::npos);
  // Also where a grammar of another kind holds the schema.
  EXPECT_NE(error_of(GrammarKind::kLark, R"(start: "x" %json {"uniqueItems":true})").find("'uniqueItems'"),
            std::string::npos);
}

TEST(Grammar, KeywordsThatRestrictNothingAreTaken) {
  for (const char* schema : {R"({"uniqueItems":false})", R"({"if":{"type":"string"}})", R"({"unevaluatedItems":true})",
                             R"({"title":"t","description":"d","default":1,"examples":[2],"x-else":3})",
                             R"({"$defs":{"unused":{"not":{}}}})"})
    EXPECT_TRUE(matches(kJson, schema, "1")) << schema;
}

TEST(Grammar, NamesHaveOneSpelling) {
  const std::string schema = R"({"properties":{"foo":{"type":"integer"}}})";
  EXPECT_TRUE(matches(kJson, schema, R"({"foo":1,"bar":"x"})"));
  EXPECT_FALSE(matches(kJson, schema, R"({"\u0066oo":"x"})"));
  EXPECT_FALSE(matches(kJson, schema, R"({"bar":1,"foo":"x"})"));
}

TEST(Grammar, NumbersKeepTheirBounds) {
  EXPECT_FALSE(matches(kJson, R"({"type":"integer","maximum":18446744073709551615})", "18446744073709551616"));
  EXPECT_FALSE(matches(kJson, R"({"type":"integer","format":"uint8"})", "256"));
  EXPECT_TRUE(matches(kJson, R"({"type":"integer","format":"int32"})", "-2147483648"));
  EXPECT_FALSE(matches(kJson, R"({"type":"integer","minimum":3,"exclusiveMinimum":true})", "3"));
  EXPECT_TRUE(matches(kJson, R"({"multipleOf":0.01})", "12.34"));
  EXPECT_FALSE(matches(kJson, R"({"multipleOf":0.01})", "12.345"));
}

TEST(Grammar, PatternsFollowEcma) {
  EXPECT_TRUE(matches(kJson, R"({"type":"string","pattern":"^\\d{2}[[a]$"})", "\"12[\""));
  EXPECT_FALSE(matches(kJson, R"({"type":"string","pattern":"^\\d$"})", "\"\xd9\xa3\""));
  EXPECT_TRUE(matches(kJson, R"({"type":"string","pattern":"b"})", "\"abc\""));
  EXPECT_FALSE(matches(kJson, R"({"type":"string","pattern":"^b"})", "\"abc\""));
}

TEST(Grammar, RegexAndLark) {
  EXPECT_TRUE(matches(GrammarKind::kRegex, "[a-z]+(,[a-z]+)*", "ab,c"));
  EXPECT_FALSE(matches(GrammarKind::kRegex, "[a-z]+(,[a-z]+)*", "ab,"));
  EXPECT_TRUE(matches(GrammarKind::kLark, "start: \"yes\" | \"no\"", "no"));
  EXPECT_NE(error_of(GrammarKind::kRegex, "("), "");
  EXPECT_NE(error_of(GrammarKind::kLark, "start: missing"), "");
  EXPECT_NE(error_of(kJson, "{"), "");
  EXPECT_NE(error_of(GrammarKind::kLark, ""), "");
}

TEST(Grammar, SpecialTokensAreNamedByLark) {
  const auto constraint = compiled(GrammarKind::kLark, "start: \"a\" <|end|> \"b\"");
  ASSERT_NE(constraint, nullptr);
  EXPECT_EQ(feed(*constraint, "a"), 1u);
  EXPECT_TRUE(allows(*constraint, kByteEnd));
  EXPECT_FALSE(allows(*constraint, 'b'));
  ASSERT_TRUE(constraint->accept(kByteEnd).ok());
  EXPECT_EQ(feed(*constraint, "b"), 1u);
  EXPECT_TRUE(constraint->complete());
  // As text it is not that token.
  EXPECT_EQ(feed(*compiled(GrammarKind::kLark, "start: \"a\" <|end|> \"b\""), "a<"), 1u);
}

TEST(Grammar, EndsWhereItMayAndWhereItMust) {
  const auto number = compiled(kJson, R"({"type":"integer"})");
  EXPECT_FALSE(may_end(*number));
  EXPECT_EQ(feed(*number, "12"), 2u);
  EXPECT_FALSE(number->complete());
  EXPECT_TRUE(allows(*number, kByteEnd));
  EXPECT_TRUE(number->accept(kByteEnd).ok());
  EXPECT_TRUE(number->complete());

  const auto object = compiled(kJson, R"({"type":"object","additionalProperties":false})");
  EXPECT_EQ(feed(*object, "{}"), 2u);
  EXPECT_TRUE(object->complete());
  EXPECT_TRUE(allows(*object, kByteEnd));
}

TEST(Grammar, AClonesPathIsItsOwn) {
  const auto first = compiled(kJson, R"({"enum":["ab","cd"]})");
  EXPECT_EQ(feed(*first, "\""), 1u);
  const auto second = first->clone();
  EXPECT_EQ(feed(*first, "ab\""), 3u);
  EXPECT_TRUE(first->complete());
  EXPECT_EQ(feed(*second, "cd\""), 3u);
  EXPECT_TRUE(second->complete());
  const auto failed = compiled(kJson, R"({"enum":["ab","cd"]})");
  const auto refusal = failed->accept('x');
  ASSERT_FALSE(refusal.ok());
  EXPECT_EQ(refusal.error().kind, ErrorKind::kInternal);
}

TEST(Grammar, AMatcherMovesBetweenThreads) {
  std::unique_ptr<sampling::Constraint> constraint;
  std::thread([&] { constraint = compiled(kJson, R"({"type":"boolean"})"); }).join();
  EXPECT_EQ(feed(*constraint, "tr"), 2u);
  std::thread([&] { EXPECT_EQ(feed(*constraint, "ue"), 2u); }).join();
  EXPECT_TRUE(constraint->complete());
}

TEST(Grammar, TokensOutsideTheVocabularyAreNotAllowed) {
  const auto constraint = compiled(GrammarKind::kRegex, "(?s:.*)");
  std::vector<uint32_t> words(64, ~uint32_t{0});
  ASSERT_TRUE(constraint->allowed(words).ok());
  for (size_t i = 9; i < words.size(); ++i) EXPECT_EQ(words[i], 0u);
  EXPECT_FALSE(GrammarCompiler::create(byte_tokenizer(), std::vector<int32_t>{100000}).ok());
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Whatever is asked, the answer comes soon, and so does each mask.
void expect_bounded(GrammarKind kind, const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  auto constraint = byte_compiler().compile({kind, text});
  if (constraint.ok()) {
    for (int i = 0; i < 40 && !(*constraint)->complete(); ++i) {
      std::vector<uint32_t> words(9);
      const auto limited = (*constraint)->allowed(words);
      if (!limited.ok()) break;
      int32_t token = 0;
      while (token < kByteEnd && (words[static_cast<size_t>(token) / 32] >> (token % 32) & 1) == 0) ++token;
      if (!(*constraint)->accept(token).ok()) break;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 5.0) << text.substr(0, 80);
}

TEST(Grammar, HostileGrammarsAreBounded) {
  expect_bounded(GrammarKind::kRegex, "(((a{1000}){1000}){1000}){1000}");
  expect_bounded(GrammarKind::kRegex, "(a|a)*(a|aa)*b" + repeated("(a|b)", 300));
  expect_bounded(GrammarKind::kRegex, "(?s:.*)a(?s:.{30})");
  expect_bounded(GrammarKind::kRegex, repeated("(", 200000) + repeated(")", 200000));
  expect_bounded(GrammarKind::kRegex, "[" + repeated("\\p{L}", 2000) + "]{500}x");
  expect_bounded(GrammarKind::kLark, "start: " + repeated("(", 100000));
  expect_bounded(GrammarKind::kLark, "start: start start | \"a\" | \"\"");
  expect_bounded(GrammarKind::kLark, "start: a\na: b\nb: a");
  expect_bounded(GrammarKind::kLark, "start: (\"a\"{1,1000}){1,1000}");
  expect_bounded(kJson, repeated("{\"items\":", 100) + "{}" + repeated("}", 100));
  expect_bounded(kJson, repeated("[", 100000));
  expect_bounded(kJson, R"({"type":"array","minItems":1000000000})");
  expect_bounded(kJson, R"({"type":"string","minLength":1000000000})");
  expect_bounded(kJson, R"({"multipleOf":4294967291})");
  expect_bounded(kJson, R"({"$ref":"#"})");
  expect_bounded(kJson, R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})");
  expect_bounded(kJson, R"({"anyOf":[{"$ref":"#"},{"$ref":"#"}]})");
  std::string doubling = R"({"$ref":"#/$defs/d0","$defs":{"d40":{"type":"integer"})";
  for (int i = 0; i < 40; ++i)
    doubling += fmt::format(R"(,"d{0}":{{"allOf":[{{"$ref":"#/$defs/d{1}"}},{{"$ref":"#/$defs/d{1}"}}]}})", i, i + 1);
  expect_bounded(kJson, doubling + "}}");
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 3000; ++i) wide += fmt::format(R"({}"p{}":{{"type":"string"}})", i == 0 ? "" : ",", i);
  expect_bounded(kJson, wide + "}}");
  std::string unions = R"({"allOf":[)";
  for (int i = 0; i < 24; ++i)
    unions += fmt::format(R"({}{{"anyOf":[{{"minimum":{}}},{{"maximum":{}}}]}})", i == 0 ? "" : ",", i, i);
  expect_bounded(kJson, unions + "]}");
  std::string patterns = R"({"patternProperties":{)";
  for (int i = 0; i < 32; ++i) patterns += fmt::format(R"({}"^(a|b)*{}(a|b){{12}}$":true)", i == 0 ? "" : ",", i);
  expect_bounded(kJson, patterns + "}}");
}

TEST(Grammar, MarksAreFoundInTheVocabulary) {
  EXPECT_EQ(mark_ids(byte_tokenizer(), "<|end|>").value(), std::vector<int32_t>{kByteEnd});
  EXPECT_EQ(mark_ids(byte_tokenizer(), "</t>").value(), (std::vector<int32_t>{'<', '/', 't', '>'}));
  const Tokenizer pieces = Tokenizer::create(sentencepiece_vocabulary({"<", "t", ">", "\xe2\x96\x81"})).value();
  EXPECT_EQ(mark_ids(pieces, "<t>").value(), (std::vector<int32_t>{259, 260, 261}));
}

}  // namespace
}  // namespace vedette::text
