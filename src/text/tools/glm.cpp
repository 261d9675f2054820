// GLM 4.5 and later: <tool_call>NAME\n<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n</tool_call>, the newlines
// optional.
#include "text/tools/call_grammar.h"
#include "text/tools/syntaxes.h"
#include "text/tools/xml_calls.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kKey = "<arg_key>", kKeyEnd = "</arg_key>";
constexpr std::string_view kValue = "<arg_value>", kValueEnd = "</arg_value>";
constexpr std::string_view kMarkers[] = {kOpen, kClose, kKey, kKeyEnd, kValue, kValueEnd};

XmlForm form() {
  return {.wrappers = {kOpen},
          .wrapper_closers = {kClose},
          .name_stops = " \n\t\r<",
          .call_close = kClose,
          .parameter_open = kKey,
          .key_end = kKeyEnd,
          .value_open = kValue,
          .value_close = kValueEnd};
}

class Glm final : public ToolSyntax {
 public:
  const char* name() const override { return "glm"; }
  bool spoken_by(std::string_view source) const override { return source.find(kKey) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<XmlCallParser>(std::move(tools), form());
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const auto mark = [&](std::string_view text) { return lark_mark(text, special); };
    const bool token = mark(kValueEnd).front() == '<';
    return call_rules(
        tools, choice, {.between = lark_text("\n")}, [&](const ToolSpec& tool, size_t n, std::string& rules) {
          const auto parameters = parameter_rules(tool, n, rules, [&](const std::string& name) {
            return ParameterForm{.open = mark(kKey) + " " + lark_text(name) + " " + mark(kKeyEnd) + " " +
                                         lark_text("\n") + " " + mark(kValue),
                                 .close = mark(kValueEnd) + " " + lark_text("\n"),
                                 .close_regex = token ? "" : R"(<\/arg_value>)",
                                 .after_text = lark_text("\n")};
          });
          return mark(kOpen) + " " + lark_text(tool.name + "\n") + " " + in_sequence(parameters) + mark(kClose);
        });
  }
};

}  // namespace

const ToolSyntax& glm_syntax() {
  static const Glm kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
