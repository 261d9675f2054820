// Gemma 4: <|tool_call>call:NAME{key:<|"|>text<|"|>,n:3}<tool_call|>, values nested as in JSON with bare keys.
#include "text/tools/call_grammar.h"
#include "text/tools/head_cursor.h"
#include "text/tools/json_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<|tool_call>", kClose = "<tool_call|>", kQuote = "<|\"|>";
constexpr std::string_view kResponse = "<|tool_response>";
constexpr std::string_view kMarkers[] = {kOpen, kClose, kQuote, kResponse};

class GemmaParser final : public JsonCallParser {
 public:
  explicit GemmaParser(std::vector<ToolSpec> tools)
      : JsonCallParser(std::move(tools), {.marks = {.openers = {kOpen}, .closers = {kClose, kResponse}}}) {}

 private:
  void opened(size_t) override {}
  void head(char) override {
    HeadCursor cursor(head_text());
    std::string_view name;
    cursor.blank().literal("call:");
    const bool prefix = cursor.stopped();
    cursor.until("{", name);
    if (cursor.failed() || (!prefix && !starts_tool(trim_blank(name)))) return give_up();
    if (cursor.more()) return;
    const ToolSpec* tool = find_tool(trim_blank(name));
    if (tool == nullptr) return give_up();
    begin_plain(*tool, true, {.quote = kQuote, .bare_values = true});
  }
};

class Gemma final : public ToolSyntax {
 public:
  const char* name() const override { return "gemma"; }
  bool spoken_by(std::string_view source) const override { return source.find(kOpen) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<GemmaParser>(std::move(tools));
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string open = lark_mark(kOpen, special), close = lark_mark(kClose, special);
    const std::string quote = lark_mark(kQuote, special);
    const bool token = quote.front() == '<';
    return call_rules(tools, choice, {}, [&](const ToolSpec& tool, size_t n, std::string& rules) {
      const auto parameters = parameter_rules(tool, n, rules, [&](const std::string& name) {
        return ParameterForm{.open = lark_text(name + ":"),
                             .close_regex = token ? "" : R"(<\|"\|>)",
                             .text_open = quote,
                             .text_close = quote};
      });
      return open + " " + lark_text("call:" + tool.name + "{") + " " + comma_separated(parameters, ",") + " " +
             lark_text("}") + " " + close;
    });
  }
};

}  // namespace

const ToolSyntax& gemma_syntax() {
  static const Gemma kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
