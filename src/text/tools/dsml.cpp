// DeepSeek V3.2: <｜DSML｜function_calls>\n<｜DSML｜invoke name="NAME">\n<｜DSML｜parameter name="KEY"
// string="true">VALUE
// </｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>; string="false": the value is JSON.
#include "text/tools/call_grammar.h"
#include "text/tools/syntaxes.h"
#include "text/tools/xml_calls.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<｜DSML｜function_calls>", kClose = "</｜DSML｜function_calls>";
constexpr std::string_view kMarkers[] = {"｜DSML｜"};

XmlForm form() {
  return {.wrappers = {kOpen},
          .wrapper_closers = {kClose},
          .call_open = "<｜DSML｜invoke name=\"",
          .name_stops = "\"",
          .name_end = "\"",
          .call_close = "</｜DSML｜invoke>",
          .parameter_open = "<｜DSML｜parameter name=\"",
          .key_end = "\"",
          .attributes = true,
          .string_attribute = true,
          .value_close = "</｜DSML｜parameter>"};
}

class Dsml final : public ToolSyntax {
 public:
  const char* name() const override { return "dsml"; }
  bool spoken_by(std::string_view source) const override { return source.find("｜DSML｜") != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<XmlCallParser>(std::move(tools), form());
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const auto marked = [&](const std::string& text) { return lark_marked(text, special); };
    const bool token = marked("｜DSML｜").front() == '<';
    return call_rules(tools, choice,
                      {.open = marked("<｜DSML｜function_calls>\n"), .close = marked("</｜DSML｜function_calls>")},
                      [&](const ToolSpec& tool, size_t n, std::string& rules) {
                        const auto parameters = parameter_rules(tool, n, rules, [&](const std::string& name) {
                          return ParameterForm{.open = marked("<｜DSML｜parameter name=\"" + name + "\""),
                                               .close = marked("</｜DSML｜parameter>\n"),
                                               .close_regex = token ? R"(<\/)" : R"(<\/｜DSML｜parameter>)",
                                               .lazy = !token,
                                               .after_text = marked(token ? "｜DSML｜parameter>\n" : "\n"),
                                               .text_open = lark_text(" string=\"true\">"),
                                               .json_open = lark_text(" string=\"false\">")};
                        });
                        return marked("<｜DSML｜invoke name=\"" + tool.name + "\">\n") + in_sequence(parameters) +
                               marked("</｜DSML｜invoke>\n");
                      });
  }
};

}  // namespace

const ToolSyntax& dsml_syntax() {
  static const Dsml kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
