// LFM2: <|tool_call_start|>[f(a="v", n=3), g()]<|tool_call_end|>, a list of Python calls.
#include "text/tools/call_grammar.h"
#include "text/tools/python_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<|tool_call_start|>", kClose = "<|tool_call_end|>";
constexpr std::string_view kMarkers[] = {kOpen, kClose};

std::string call_body(const ToolSpec& tool, size_t n, std::string& rules) {
  const auto parameters = parameter_rules(tool, n, rules, [](const std::string& name) {
    return ParameterForm{.open = lark_text(name + "="), .json_strings = true};
  });
  return lark_text(tool.name + "(") + " " + comma_separated(parameters, ", ") + " " + lark_text(")");
}

class Lfm2 final : public ToolSyntax {
 public:
  const char* name() const override { return "lfm2"; }
  bool spoken_by(std::string_view source) const override {
    return source.find(kOpen) != std::string_view::npos ||
           source.find("<|tool_list_start|>") != std::string_view::npos ||
           source.find("List of tools: [") != std::string_view::npos;
  }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<PythonCallParser>(
        std::move(tools), JsonCallsForm{.marks = {.openers = {kOpen}, .closers = {kClose}, .first = {"["}}});
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    return call_rules(tools, choice,
                      {.open = lark_mark(kOpen, special) + " " + lark_text("["),
                       .between = lark_text(", "),
                       .close = lark_text("]") + " " + lark_mark(kClose, special)},
                      call_body);
  }
};

}  // namespace

const ToolSyntax& lfm2_syntax() {
  static const Lfm2 kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
