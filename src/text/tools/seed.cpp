// Seed-OSS: <seed:tool_call>\n<function=NAME>\n<parameter=KEY>VALUE</parameter>\n</function>\n</seed:tool_call>
#include "text/tools/call_grammar.h"
#include "text/tools/syntaxes.h"
#include "text/tools/xml_calls.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<seed:tool_call>", kClose = "</seed:tool_call>";
constexpr std::string_view kMarkers[] = {kOpen, kClose};

XmlForm form() {
  return {.wrappers = {kOpen},
          .wrapper_closers = {kClose},
          .call_open = "<function=",
          .name_stops = ">",
          .name_end = ">",
          .call_close = "</function>",
          .parameter_open = "<parameter=",
          .key_end = ">",
          .value_close = "</parameter>"};
}

class Seed final : public ToolSyntax {
 public:
  const char* name() const override { return "seed"; }
  bool spoken_by(std::string_view source) const override { return source.find(kOpen) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<XmlCallParser>(std::move(tools), form());
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string open = lark_mark(kOpen, special), close = lark_mark(kClose, special);
    return call_rules(tools, choice, {.between = lark_text("\n")},
                      [&](const ToolSpec& tool, size_t n, std::string& rules) {
                        return open + " " + lark_text("\n") + " " + xml_call_body(form(), tool, n, rules) + " " + close;
                      });
  }
};

}  // namespace

const ToolSyntax& seed_syntax() {
  static const Seed kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
