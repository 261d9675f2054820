// DeepSeek V3.1:
// <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{..}<｜tool▁call▁end｜><｜tool▁calls▁end｜>; V3 and R1
// write function<｜tool▁sep｜>NAME, a newline and the arguments in a ```json block.
#include "text/tools/call_grammar.h"
#include "text/tools/head_cursor.h"
#include "text/tools/json_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kCalls = "<｜tool▁calls▁begin｜>", kCallsEnd = "<｜tool▁calls▁end｜>";
constexpr std::string_view kCall = "<｜tool▁call▁begin｜>", kCallEnd = "<｜tool▁call▁end｜>";
constexpr std::string_view kSeparator = "<｜tool▁sep｜>";
constexpr std::string_view kMarkers[] = {kCalls, kCallsEnd, kCall, kCallEnd, kSeparator};

class DeepSeekParser final : public JsonCallParser {
 public:
  explicit DeepSeekParser(std::vector<ToolSpec> tools)
      : JsonCallParser(std::move(tools), {.marks = {.openers = {kCalls, kCall}, .closers = {kCallEnd, kCallsEnd}}}) {}

 private:
  void opened(size_t opener) override { section_ = opener == 0; }
  void head(char) override {
    HeadCursor cursor(head_text());
    if (section_) cursor.blank().literal(kCall);
    std::string_view name;
    cursor.until("<", name).literal(kSeparator).blank();
    const bool old_form = cursor.peek() != '{';
    if (old_form) cursor.until("\n", name).blank().optional("```json").blank();
    const char first = cursor.peek();
    if (cursor.more()) return;
    const ToolSpec* tool = find_tool(trim_blank(name));
    if (cursor.failed() || first != '{' || tool == nullptr) return give_up();
    begin_plain(*tool, true);
  }
  void after(char c) override {
    if (c != '`' && !is_blank(c)) to_text(true);  // the block's end
  }

  bool section_ = false;
};

class DeepSeek final : public ToolSyntax {
 public:
  const char* name() const override { return "deepseek"; }
  bool spoken_by(std::string_view source) const override { return source.find(kCall) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<DeepSeekParser>(std::move(tools));
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string call = lark_mark(kCall, special), end = lark_mark(kCallEnd, special);
    return call_rules(tools, choice, {.open = lark_mark(kCalls, special), .close = lark_mark(kCallsEnd, special)},
                      [&](const ToolSpec& tool, size_t, std::string&) {
                        const std::string separator = lark_mark(kSeparator, special), json = lark_json(tool.parameters);
                        const std::string name = lark_text(tool.name);
                        return call + " (" + name + " " + separator + " " + json + " | " + lark_text("function") + " " +
                               separator + " " + lark_text(tool.name + "\n```json\n") + " " + json + " " +
                               lark_text("\n```") + ") " + end;
                      });
  }
};

}  // namespace

const ToolSyntax& deepseek_syntax() {
  static const DeepSeek kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
