#include "text/message_parser.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "base/json.h"

namespace vedette::text {
namespace {

using Kind = MessagePart::Kind;

// The functions that the golden replies call.
std::vector<ToolSpec> golden_tools() {
  const auto tool = [](const char* name, const char* schema) {
    ToolSpec spec{.name = name};
    if (*schema != '\0') spec.parameters = parse_json(schema, name).value();
    return spec;
  };
  return {
      tool("weather",
           R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
               "metric": {"type": "boolean"}}, "required": ["city"]})"),
      tool("search",
           R"({"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": ["integer", "null"]},
               "tags": {"anyOf": [{"type": "array"}, {"type": "null"}]}, "options": {"$ref": "#/$defs/options"}},
               "$defs": {"options": {"type": "object"}}})"),
      tool("now", R"({"type": "object", "properties": {}})"),
      tool("write_file",
           R"({"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}})"),
      tool("anything", ""),
  };
}

// Parts with neighbours of one kind joined: what a client has in the end.
class Collector {
 public:
  void add(const std::vector<MessagePart>& parts) {
    for (const MessagePart& part : parts) {
      const bool joins = part.kind != Kind::kCallBegin && part.kind != Kind::kCallEnd;
      if (joins && !all_.empty() && all_.back().kind == part.kind && all_.back().call == part.call) {
        all_.back().text += part.text;
      } else {
        all_.push_back(part);
      }
      EXPECT_TRUE(!joins || !part.text.empty());
    }
  }
  const std::vector<MessagePart>& all() const { return all_; }

 private:
  std::vector<MessagePart> all_;
};

std::string show(const std::vector<MessagePart>& parts) {
  std::string out;
  for (const MessagePart& part : parts) {
    static constexpr const char* kNames[] = {"reasoning", "content", "begin", "arguments", "end"};
    out += std::string(kNames[static_cast<int>(part.kind)]) + "#" + std::to_string(part.call) + " " +
           Json(part.text).dump() + (part.malformed ? " malformed" : "") + "\n";
  }
  return out;
}

struct Golden {
  std::string name;
  std::string raw;
  std::string prompt;
  MessageFormat format;
  std::vector<MessagePart> parts;
};

std::vector<MessagePart> expected_parts(const Json& parts) {
  std::vector<MessagePart> out;
  int call = 0;
  for (const Json& part : parts.as_array()) {
    const std::string kind = part.as_array()[0].as_string(), text = part.as_array()[1].as_string();
    if (kind == "content" || kind == "reasoning") {
      out.push_back({.kind = kind == "content" ? Kind::kContent : Kind::kReasoning, .text = text});
      continue;
    }
    const std::string arguments = part.as_array()[2].as_string();
    out.push_back({.kind = Kind::kCallBegin, .call = call, .text = text});
    if (!arguments.empty()) out.push_back({.kind = Kind::kArguments, .call = call, .text = arguments});
    out.push_back({.kind = Kind::kCallEnd, .call = call++, .malformed = kind == "malformed"});
  }
  return out;
}

std::vector<Golden> goldens() {
  std::ifstream file(VEDETTE_SOURCE_DIR "/src/text/tools/golden_replies.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto all = parse_json(text.str(), "golden_replies.json");
  EXPECT_TRUE(all.ok()) << all.error().message;
  std::vector<Golden> out;
  for (const Json& entry : all.value().as_array()) {
    Golden golden;
    const std::string syntax = entry.find("syntax")->as_string();
    golden.name = syntax + ": " + entry.find("name")->as_string();
    golden.raw = entry.find("raw")->as_string();
    if (const Json* prompt = entry.find("prompt")) golden.prompt = prompt->as_string();
    if (const Json* marks = entry.find("reasoning"))
      golden.format.reasoning = ReasoningMarks{marks->as_array()[0].as_string(), marks->as_array()[1].as_string()};
    golden.format.tools = find_tool_syntax(syntax);
    EXPECT_EQ(golden.format.tools == nullptr, syntax.empty()) << syntax;
    golden.parts = expected_parts(*entry.find("parts"));
    out.push_back(std::move(golden));
  }
  return out;
}

// Pushes the pieces one after the other; each piece's parts must be final, so they are only ever added to.
std::vector<MessagePart> parse(const Golden& golden, std::span<const std::string_view> pieces) {
  MessageParser parser(golden.format, golden_tools(), golden.prompt);
  Collector collector;
  std::vector<MessagePart> parts;
  for (std::string_view piece : pieces) {
    parts.clear();
    parser.push(piece, parts);
    collector.add(parts);
  }
  parts.clear();
  parser.finish(parts);
  collector.add(parts);
  return collector.all();
}

TEST(MessageParser, GoldenReplies) {
  const auto all = goldens();
  ASSERT_GT(all.size(), 100u);
  for (const Golden& golden : all) {
    const std::string_view whole[] = {golden.raw};
    EXPECT_EQ(show(parse(golden, whole)), show(golden.parts)) << golden.name;
  }
}

TEST(MessageParser, CutAtEveryByte) {
  for (const Golden& golden : goldens()) {
    const std::string_view whole = golden.raw;
    const std::string expected = show(golden.parts);
    for (size_t cut = 0; cut <= whole.size(); ++cut) {
      const std::string_view pieces[] = {whole.substr(0, cut), whole.substr(cut)};
      ASSERT_EQ(show(parse(golden, pieces)), expected) << golden.name << " cut at " << cut;
    }
  }
}

TEST(MessageParser, PiecesOfEverySize) {
  for (const Golden& golden : goldens()) {
    for (size_t size : {1, 2, 3, 5, 7, 11}) {
      std::vector<std::string_view> pieces;
      for (size_t at = 0; at < golden.raw.size(); at += size)
        pieces.push_back(std::string_view(golden.raw).substr(at, size));
      ASSERT_EQ(show(parse(golden, pieces)), show(golden.parts)) << golden.name << " by " << size;
    }
  }
}

// Whatever comes of a reply that ends at any byte, a call once announced stays, and what was given out before the end
// is the beginning of the whole reply's parts.
TEST(MessageParser, EveryPrefixIsConsistent) {
  for (const Golden& golden : goldens()) {
    MessageParser parser(golden.format, golden_tools(), golden.prompt);
    Collector so_far;
    for (size_t end = 1; end <= golden.raw.size(); ++end) {
      std::vector<MessagePart> parts;
      parser.push(std::string_view(golden.raw).substr(end - 1, 1), parts);
      so_far.add(parts);
      for (size_t i = 0; i < so_far.all().size(); ++i) {
        ASSERT_LT(i, golden.parts.size()) << golden.name;
        const MessagePart &got = so_far.all()[i], &whole = golden.parts[i];
        ASSERT_EQ(got.kind, whole.kind) << golden.name << " at " << end;
        ASSERT_TRUE(whole.text.starts_with(got.text)) << golden.name << " at " << end << ": " << show(so_far.all());
      }
      const std::string_view pieces[] = {std::string_view(golden.raw).substr(0, end)};
      const auto cut = parse(golden, pieces);
      ASSERT_GE(cut.size(), so_far.all().size()) << golden.name << " ended at " << end;
      int open = 0;
      for (const MessagePart& part : cut) {
        if (part.kind == Kind::kCallBegin) ++open;
        if (part.kind == Kind::kCallEnd) --open;
        ASSERT_TRUE(open == 0 || open == 1);
      }
      ASSERT_EQ(open, 0) << golden.name << " ended at " << end;
    }
  }
}

// Arguments of a call that is not flagged are one JSON object; of a flagged one they are not.
TEST(MessageParser, FlaggedExactlyWhereNoObject) {
  for (const Golden& golden : goldens()) {
    for (size_t end = 0; end <= golden.raw.size(); ++end) {
      const std::string_view pieces[] = {std::string_view(golden.raw).substr(0, end)};
      std::string arguments;
      for (const MessagePart& part : parse(golden, pieces)) {
        if (part.kind == Kind::kArguments) arguments += part.text;
        if (part.kind != Kind::kCallEnd) continue;
        const auto parsed = parse_json(arguments, "arguments");
        ASSERT_EQ(part.malformed, !parsed.ok() || !parsed.value().is_object()) << golden.name << ": " << arguments;
        arguments.clear();
      }
    }
  }
}

TEST(MessageParser, HoldsBackNoMoreThanAMark) {
  MessageParser parser({.reasoning = ReasoningMarks{"<think>", "</think>"}, .tools = find_tool_syntax("hermes")},
                       golden_tools(), "<think>\n");
  EXPECT_TRUE(parser.in_reasoning());
  std::vector<MessagePart> parts;
  parser.push("abc</thin", parts);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].text, "abc");
  parts.clear();
  parser.push("g", parts);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].text, "</thing");
  parts.clear();
  parser.push("</think>x<tool_call", parts);
  EXPECT_FALSE(parser.in_reasoning());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].text, "x");
  parts.clear();
  parser.push(R"(>{"name": "weather", "arguments": {"city": "O)", parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].text, R"({"city": "O)");
}

TEST(MessageParser, WithoutSyntaxOrToolsAllIsContent) {
  const std::string raw = R"(<tool_call>{"name": "now"}</tool_call>)";
  for (const ToolSyntax* syntax : {static_cast<const ToolSyntax*>(nullptr), find_tool_syntax("hermes")}) {
    MessageParser parser({.tools = syntax}, {}, "");
    std::vector<MessagePart> parts;
    parser.push(raw, parts);
    parser.finish(parts);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].text, raw);
  }
}

TEST(MessageParser, ChannelsWithoutTools) {
  const std::string raw =
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>";
  MessageParser parser({.reasoning = detect_reasoning("<|channel|>analysis<|message|>")}, golden_tools(), "");
  std::vector<MessagePart> parts;
  parser.push(raw, parts);
  EXPECT_FALSE(parser.in_reasoning());
  parser.finish(parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].kind, Kind::kReasoning);
  EXPECT_EQ(parts[1].text, "Hello");
}

std::string repeated(std::string_view text, size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += text;
  return out;
}

// Text made to be read again and again takes time in proportion to its length.
TEST(MessageParser, HostileTextIsLinear) {
  static constexpr std::string_view kPieces[] = {"<tool_call>",
                                                 "<tool_call>{",
                                                 R"(<tool_call>{"name": ")",
                                                 R"(<tool_call>{"a":")",
                                                 "<tool_call>{'a':'",
                                                 "<tool_call>\n<function=",
                                                 "<function=weather",
                                                 "<function=weather>",
                                                 "<function=weather><parameter=a>",
                                                 "<tool_call>weather",
                                                 "<|tool_call>call:weather{",
                                                 "[TOOL_CALLS]",
                                                 "[TOOL_CALLS]weather[",
                                                 "[TOOL_CALLS][{",
                                                 "<|channel|>",
                                                 "<|start|>assistant",
                                                 " to=",
                                                 "to=self",
                                                 "<|tool_calls_section_begin|>",
                                                 "<|tool_call_begin|>a",
                                                 "<｜tool▁calls▁begin｜>",
                                                 "<｜tool▁call▁begin｜>",
                                                 "[weather(",
                                                 "{\"name\":",
                                                 "(",
                                                 "[",
                                                 "{",
                                                 " ",
                                                 "\n",
                                                 "<",
                                                 "</",
                                                 "<think>",
                                                 "</think",
                                                 "<think> ",
                                                 "<atem:invoke name=\"",
                                                 "<function name=\"weather\"><param name=\"",
                                                 R"(<tool_call>{"name": "weather", "arguments": {"a":)",
                                                 R"(<tool_call>{"name": "weather", "arguments": [)",
                                                 R"(<tool_call>{"name": "now"}</tool_call>)",
                                                 R"(<tool_call>{"arguments": ")"};
  const size_t bytes = size_t{1} << 16;
  for (const ToolSyntax* syntax : tool_syntaxes()) {
    for (std::string_view piece : kPieces) {
      const std::string text = repeated(piece, bytes);
      const auto start = std::chrono::steady_clock::now();
      MessageParser parser({.reasoning = ReasoningMarks{"<think>", "</think>"}, .tools = syntax}, golden_tools(), "");
      std::vector<MessagePart> parts;
      parser.push(text, parts);
      parser.finish(parts);
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      EXPECT_LT(spent.count(), 1.0) << syntax->name() << ": " << piece;
    }
  }
}

TEST(MessageParser, TenMegabytesOfOpeners) {
  const std::string text = repeated("<tool_call>", size_t{10} << 20);
  MessageParser parser({.tools = find_tool_syntax("hermes")}, golden_tools(), "");
  std::vector<MessagePart> parts;
  const auto start = std::chrono::steady_clock::now();
  parser.push(text, parts);
  parser.finish(parts);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  EXPECT_LT(spent.count(), 8.0);  // well below a second without sanitizers
  std::string content;
  for (const MessagePart& part : parts) content += part.text;
  EXPECT_TRUE(content == text);
}

TEST(MessageParser, DeepNestingIsMalformed) {
  Golden golden{.format = {.tools = find_tool_syntax("hermes")}};
  golden.raw = R"(<tool_call>{"name": "anything", "arguments": {"a":)" + repeated("[", 100000);
  const std::string_view pieces[] = {golden.raw};
  const auto parts = parse(golden, pieces);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(parts[2].malformed);
}

}  // namespace
}  // namespace vedette::text
