// Kimi K2: <|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{..}
// <|tool_call_end|><|tool_calls_section_end|>
#include "text/tools/call_grammar.h"
#include "text/tools/head_cursor.h"
#include "text/tools/json_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kSection = "<|tool_calls_section_begin|>", kSectionEnd = "<|tool_calls_section_end|>";
constexpr std::string_view kCall = "<|tool_call_begin|>", kCallEnd = "<|tool_call_end|>";
constexpr std::string_view kArguments = "<|tool_call_argument_begin|>";
constexpr std::string_view kMarkers[] = {kSection, kSectionEnd, kCall, kCallEnd, kArguments};
constexpr std::string_view kPrefix = "functions.";

// functions.NAME:7 -> NAME
std::string_view name_of(std::string_view id) {
  id = trim_blank(id);
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  const size_t colon = id.rfind(':');
  const bool counted = colon != std::string_view::npos && id.find_first_not_of("0123456789", colon + 1) == id.npos;
  return counted ? id.substr(0, colon) : id;
}

class KimiParser final : public JsonCallParser {
 public:
  explicit KimiParser(std::vector<ToolSpec> tools)
      : JsonCallParser(std::move(tools),
                       {.marks = {.openers = {kSection, kCall}, .closers = {kCallEnd, kSectionEnd}}}) {}

 private:
  void opened(size_t opener) override { section_ = opener == 0; }
  void head(char) override {
    HeadCursor cursor(head_text());
    if (section_) cursor.blank().literal(kCall);
    std::string_view id;
    cursor.until("<", id).literal(kArguments);
    if (cursor.failed()) return give_up();
    if (cursor.more()) return;
    const ToolSpec* tool = find_tool(name_of(id));
    if (tool == nullptr) return give_up();
    begin_plain(*tool, false);
  }

  bool section_ = false;
};

class Kimi final : public ToolSyntax {
 public:
  const char* name() const override { return "kimi"; }
  bool spoken_by(std::string_view source) const override { return source.find(kCall) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<KimiParser>(std::move(tools));
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string call = lark_mark(kCall, special), end = lark_mark(kCallEnd, special);
    return call_rules(tools, choice, {.open = lark_mark(kSection, special), .close = lark_mark(kSectionEnd, special)},
                      [&](const ToolSpec& tool, size_t, std::string&) {
                        return call + " " + lark_text("functions." + tool.name + ":") + " /[0-9]{1,4}/ " +
                               lark_mark(kArguments, special) + " " + lark_json(tool.parameters) + " " + end;
                      });
  }
};

}  // namespace

const ToolSyntax& kimi_syntax() {
  static const Kimi kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
