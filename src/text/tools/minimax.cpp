// MiniMax-M2: <minimax:tool_call>\n<invoke name="NAME">\n<parameter name="KEY">VALUE</parameter>\n</invoke>\n
// </minimax:tool_call>
#include "text/tools/call_grammar.h"
#include "text/tools/syntaxes.h"
#include "text/tools/xml_calls.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<minimax:tool_call>", kClose = "</minimax:tool_call>";
constexpr std::string_view kMarkers[] = {kOpen, kClose};

XmlForm form() {
  return {.wrappers = {kOpen},
          .wrapper_closers = {kClose},
          .call_open = "<invoke name=\"",
          .name_stops = "\"",
          .name_end = "\"",
          .call_close = "</invoke>",
          .parameter_open = "<parameter name=\"",
          .key_end = "\"",
          .attributes = true,
          .value_close = "</parameter>"};
}

class MiniMax final : public ToolSyntax {
 public:
  const char* name() const override { return "minimax"; }
  bool spoken_by(std::string_view source) const override { return source.find(kOpen) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<XmlCallParser>(std::move(tools), form());
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    return call_rules(
        tools, choice, {.open = lark_mark(kOpen, special) + " " + lark_text("\n"), .close = lark_mark(kClose, special)},
        [](const ToolSpec& tool, size_t n, std::string& rules) { return xml_call_body(form(), tool, n, rules); });
  }
};

}  // namespace

const ToolSyntax& minimax_syntax() {
  static const MiniMax kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
