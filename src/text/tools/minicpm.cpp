// MiniCPM 5: <function name="NAME"><param name="KEY">VALUE</param></function>, a value with markup in it as
// <![CDATA[VALUE]]>.
#include "text/tools/call_grammar.h"
#include "text/tools/syntaxes.h"
#include "text/tools/xml_calls.h"

namespace vedette::text {
namespace {

constexpr std::string_view kMarkers[] = {"<function", "</function>", "<param", "</param>", "<tool_sep>"};

XmlForm form() {
  return {.call_open = "<function name=\"",
          .name_stops = "\"",
          .name_end = "\"",
          .call_close = "</function>",
          .parameter_open = "<param name=\"",
          .key_end = "\"",
          .attributes = true,
          .value_close = "</param>",
          .cdata = true};
}

class MiniCpm final : public ToolSyntax {
 public:
  const char* name() const override { return "minicpm"; }
  bool spoken_by(std::string_view source) const override {
    return source.find("<function name=") != std::string_view::npos;
  }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<XmlCallParser>(std::move(tools), form());
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const auto marked = [&](const std::string& text) { return lark_marked(text, special); };
    return call_rules(
        tools, choice, {.between = lark_text("\n")}, [&](const ToolSpec& tool, size_t n, std::string& rules) {
          const auto parameters = parameter_rules(tool, n, rules, [&](const std::string& name) {
            return ParameterForm{.open = marked("<param name=\"" + name + "\">"),
                                 .close = marked("</param>"),
                                 .close_regex = R"(\]\]>)",
                                 .after_text = marked("</param>"),
                                 .text_open = lark_text("<![CDATA["),
                                 .text_close = lark_text("]]>")};
          });
          return marked("<function name=\"" + tool.name + "\">") + in_sequence(parameters) + marked("</function>");
        });
  }
};

}  // namespace

const ToolSyntax& minicpm_syntax() {
  static const MiniCpm kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
