#include "text/tools/call_grammar.h"

#include <gtest/gtest.h>
#include <vedette_text.h>

#include <algorithm>

#include "text/message_parser.h"

namespace vedette::text {
namespace {

// The 256 bytes, an end token, and a syntax's markers as special tokens.
class Vocabulary {
 public:
  explicit Vocabulary(std::span<const std::string> special) : special_(special.begin(), special.end()) {
    std::string bytes;
    std::vector<uint32_t> ends;
    const auto add = [&](std::string_view token) {
      bytes += token;
      ends.push_back(static_cast<uint32_t>(bytes.size()));
    };
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    add("\xff<end>");
    for (const std::string& token : special_) add("\xff" + token);
    const uint32_t eos = 256;
    VtBytes error{};
    const VtStatus status =
        vt_grammars_create({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), ends.data(), ends.size()},
                           &eos, 1, &grammars_, &error);
    EXPECT_EQ(status, kVtOk);
  }
  ~Vocabulary() { vt_grammars_free(grammars_); }
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t id(std::string_view text) const {
    const auto at = std::find(special_.begin(), special_.end(), text);
    return at == special_.end() ? -1 : 257 + static_cast<int32_t>(at - special_.begin());
  }

  // Empty where `text` and then its end are what the grammar says, else what went wrong and where.
  std::string check(const std::string& grammar, std::string_view text) const {
    const std::string lark = resolve_marks(grammar, [&](std::string_view name) { return id(name); });
    VtMatcher* matcher = nullptr;
    VtBytes error{};
    const auto* kind = reinterpret_cast<const uint8_t*>("lark");
    if (vt_grammars_compile(grammars_, kind, 4, reinterpret_cast<const uint8_t*>(lark.data()), lark.size(), &matcher,
                            &error) != kVtOk)
      return "does not compile: " + taken(error) + "\n" + lark;
    std::string wrong;
    size_t at = 0;
    while (at < text.size() && wrong.empty()) {
      uint32_t token = static_cast<unsigned char>(text[at]);
      size_t length = 1;
      for (const std::string& mark : special_) {
        if (!text.substr(at).starts_with(mark) || mark.size() <= length) continue;
        token = static_cast<uint32_t>(id(mark));
        length = mark.size();
      }
      if (vt_matcher_consume(matcher, token, &error) != kVtOk)
        wrong = taken(error) + " at " + std::to_string(at) + ": " + std::string(text.substr(at, 30)) + "\n" + lark;
      at += length;
    }
    if (wrong.empty()) {
      std::vector<uint32_t> words((257 + special_.size() + 31) / 32);
      EXPECT_EQ(vt_matcher_mask(matcher, words.data(), words.size(), &error), kVtOk);
      if ((words[256 / 32] >> (256 % 32) & 1) == 0) wrong = "may not end there\n" + lark;
    }
    vt_matcher_free(matcher);
    return wrong;
  }

 private:
  static std::string taken(VtBytes bytes) {
    std::string text(reinterpret_cast<const char*>(bytes.data), bytes.size);
    vt_bytes_free(bytes);
    return text;
  }
  std::vector<std::string> special_;
  VtGrammars* grammars_ = nullptr;
};

std::vector<ToolSpec> tools() {
  const char* schema =
      R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1},
          "unit": {"enum": ["C", "F"]}, "tags": {"type": "array", "items": {"type": "string"}}},
          "required": ["city", "days"], "additionalProperties": false})";
  return {{.name = "weather", .parameters = parse_json(schema, "schema").value()},
          {.name = "now", .parameters = parse_json(R"({"type": "object", "properties": {}})", "schema").value()}};
}

struct Case {
  const char* syntax;
  std::string first;   // a call of weather: Oslo, 3, C
  std::string second;  // what follows it for a call of now
  std::string end = "";
  std::string refused = "";  // a call with days 0
};

std::vector<Case> cases() {
  const std::string json = R"({"city": "Oslo", "days": 3, "unit": "C"})";
  const std::string bad = R"({"city": "Oslo", "days": 0})";
  return {
      {"hermes", "<tool_call>\n{\"name\": \"weather\", \"arguments\": " + json + "}\n</tool_call>",
       "\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", "",
       "<tool_call>\n{\"name\": \"weather\", \"arguments\": " + bad + "}\n</tool_call>"},
      {"qwen_xml",
       "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
       "<parameter=unit>\nC\n</parameter>\n</function>\n</tool_call>",
       "\n<tool_call>\n<function=now>\n</function>\n</tool_call>", "",
       "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n0\n</parameter>\n"
       "</function>\n</tool_call>"},
      {"seed",
       "<seed:tool_call>\n<function=weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>3</parameter>\n"
       "<parameter=unit>C</parameter>\n</function>\n</seed:tool_call>",
       "\n<seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>"},
      {"minicpm",
       "<function name=\"weather\"><param name=\"city\"><![CDATA[Oslo]]></param><param name=\"days\">3</param>"
       "<param name=\"unit\"><![CDATA[C]]></param></function>",
       "\n<function name=\"now\"></function>"},
      {"minimax",
       "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Oslo</parameter>\n"
       "<parameter name=\"days\">3</parameter>\n<parameter name=\"unit\">C</parameter>\n</invoke>\n",
       "<invoke name=\"now\">\n</invoke>\n", "</minimax:tool_call>"},
      {"dsml",
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" "
       "string=\"true\">Oslo"
       "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
       "string=\"false\">3</｜DSML｜parameter>\n<｜DSML｜parameter "
       "name=\"unit\" string=\"true\">C</｜DSML｜parameter>\n</｜DSML｜invoke>\n",
       "<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n", "</｜DSML｜function_calls>"},
      {"glm",
       "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3"
       "</arg_value>\n<arg_key>unit</arg_key>\n<arg_value>C</arg_value>\n</tool_call>",
       "\n<tool_call>now\n</tool_call>"},
      {"atem",
       "<atem:function_calls>\n<atem:invoke name=\"weather\">\n<atem:parameter name=\"city\">Oslo</atem:parameter>\n"
       "<atem:parameter name=\"days\">3</atem:parameter>\n<atem:parameter name=\"unit\">C</atem:parameter>\n"
       "</atem:invoke>\n</atem:function_calls>",
       "\n<atem:function_calls>\n<atem:invoke name=\"now\">\n</atem:invoke>\n</atem:function_calls>"},
      {"gemma", "<|tool_call>call:weather{city:<|\"|>Oslo<|\"|>,days:3,unit:<|\"|>C<|\"|>}<tool_call|>",
       "<|tool_call>call:now{}<tool_call|>"},
      {"mistral", "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": " + json + "}",
       ", {\"name\": \"now\", \"arguments\": {}, \"id\": \"abc123DEF\"}", "]"},
      {"llama3", "{\"name\": \"weather\", \"parameters\": " + json + "}", "; {\"name\": \"now\", \"parameters\": {}}"},
      {"lfm2", "<|tool_call_start|>[weather(city=\"Oslo\", days=3, unit=\"C\")", ", now()", "]<|tool_call_end|>"},
      {"kimi",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>" + json +
           "<|tool_call_end|>",
       "<|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
       "<|tool_calls_section_end|>"},
      {"deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>" + json + "<｜tool▁call▁end｜>",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
      {"json_list", "<tool_calls>[{\"name\": \"weather\", \"arguments\": " + json + "}",
       ", {\"name\": \"now\", \"arguments\": {}}", "]</tool_calls>"},
      {"harmony", "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>" + json,
       "<|call|><|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}"},
  };
}

// The calls that a syntax reads in a text: "name arguments" each.
std::vector<std::string> calls_in(const ToolSyntax& syntax, const std::string& text) {
  auto parser = syntax.parser(tools());
  std::vector<MessagePart> parts;
  parser->push(text, parts);
  parser->finish(parts);
  std::vector<std::string> calls;
  for (const MessagePart& part : parts) {
    if (part.kind == MessagePart::Kind::kCallBegin) calls.push_back(part.text + " ");
    if (part.kind == MessagePart::Kind::kArguments) calls.back() += part.text;
    if (part.kind == MessagePart::Kind::kContent) calls.push_back("content " + part.text);
    EXPECT_FALSE(part.malformed) << text;
  }
  return calls;
}

void check_case(const Case& c, std::span<const std::string> special) {
  const ToolSyntax* syntax = find_tool_syntax(c.syntax);
  ASSERT_NE(syntax, nullptr) << c.syntax;
  const Vocabulary vocabulary(special);
  const ToolChoice one{.kind = ToolChoiceKind::kRequired, .parallel = false};
  const ToolChoice many{.kind = ToolChoiceKind::kRequired};
  const ToolChoice named{.kind = ToolChoiceKind::kNamed, .name = "now", .parallel = false};
  const std::string single = syntax->call_grammar(tools(), one, special);
  EXPECT_EQ(vocabulary.check(single, c.first + c.end), "") << c.syntax;
  EXPECT_NE(vocabulary.check(single, c.first + c.second + c.end), "") << c.syntax;
  EXPECT_NE(vocabulary.check(single, "Hello"), "") << c.syntax;
  EXPECT_EQ(vocabulary.check(syntax->call_grammar(tools(), many, special), c.first + c.second + c.end), "") << c.syntax;
  EXPECT_NE(vocabulary.check(syntax->call_grammar(tools(), named, special), c.first + c.end), "") << c.syntax;
  EXPECT_TRUE(c.refused.empty() || !vocabulary.check(single, c.refused + c.end).empty()) << c.syntax;
  // What the grammar forces, the parser reads.
  const auto calls = calls_in(*syntax, c.first + c.second + c.end);
  ASSERT_EQ(calls.size(), 2u) << c.syntax;
  std::string compact;
  for (char ch : calls[0])
    if (ch != ' ') compact += ch;
  EXPECT_EQ(compact, R"(weather{"city":"Oslo","days":3,"unit":"C"})") << c.syntax;
  EXPECT_EQ(calls[1], "now {}") << c.syntax;
}

TEST(CallGrammar, EverySyntaxWithMarkersAsText) {
  EXPECT_EQ(cases().size(), tool_syntaxes().size());
  for (const Case& c : cases()) check_case(c, {});
}

TEST(CallGrammar, EverySyntaxWithMarkersAsTokens) {
  for (const Case& c : cases()) {
    std::vector<std::string> special;
    const std::string text = c.first + c.second + c.end;
    for (std::string_view mark : find_tool_syntax(c.syntax)->markers())
      if (text.find(mark) != std::string::npos) special.emplace_back(mark);
    check_case(c, special);
  }
}

TEST(CallGrammar, FormsThatDependOnTheVocabulary) {
  const ToolChoice one{.kind = ToolChoiceKind::kRequired, .parallel = false};
  const std::vector<std::string> mistral = {"[TOOL_CALLS]", "[ARGS]"};
  EXPECT_EQ(Vocabulary(mistral).check(find_tool_syntax("mistral")->call_grammar(tools(), one, mistral),
                                      R"([TOOL_CALLS]weather[ARGS]{"city": "a", "days": 1})"),
            "");
  const std::vector<std::string> muse = {"<|start|>", "<|message|>", "<|eom|>"};
  EXPECT_EQ(Vocabulary(muse).check(find_tool_syntax("atem")->call_grammar(tools(), one, muse),
                                   " to=now<|message|><atem:function_calls>\n<atem:invoke name=\"now\">\n"
                                   "</atem:invoke>\n</atem:function_calls>"),
            "");
  const std::vector<std::string> command = {"<|START_ACTION|>", "<|END_ACTION|>"};
  EXPECT_EQ(Vocabulary(command).check(find_tool_syntax("json_list")->call_grammar(tools(), one, command),
                                      R"(<|START_ACTION|>[{"tool_name": "now", "parameters": {}}]<|END_ACTION|>)"),
            "");
}

TEST(CallGrammar, MarksAreResolvedOutsideOfStrings) {
  const auto id = [](std::string_view text) { return text == "[X]" ? 7 : -1; };
  EXPECT_EQ(resolve_marks(R"(a: <[[X]]> "<[[X]]>" "\"" <[3]> <b>)", id), R"(a: <[7]> "<[[X]]>" "\"" <[3]> <b>)");
}

}  // namespace
}  // namespace vedette::text
