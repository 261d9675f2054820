// Hermes and Qwen: <tool_call>\n{"name": .., "arguments": {..}}\n</tool_call>
#include "text/tools/call_grammar.h"
#include "text/tools/json_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kMarkers[] = {kOpen, kClose};

class Hermes final : public ToolSyntax {
 public:
  const char* name() const override { return "hermes"; }
  bool spoken_by(std::string_view source) const override { return source.find(kOpen) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<JsonCallParser>(std::move(tools),
                                            JsonCallsForm{.marks = {.openers = {kOpen}, .closers = {kClose}}});
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string open = lark_mark(kOpen, special), close = lark_mark(kClose, special);
    return call_rules(tools, choice, {.between = lark_text("\n")}, [&](const ToolSpec& tool, size_t, std::string&) {
      return open + " " + lark_text("\n{\"name\": " + Json(tool.name).dump() + ", \"arguments\": ") + " " +
             lark_json(tool.parameters) + " " + lark_text("}\n") + " " + close;
    });
  }
};

}  // namespace

const ToolSyntax& hermes_syntax() {
  static const Hermes kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
