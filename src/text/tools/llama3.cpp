// Llama 3: {"name": .., "parameters": {..}} as the whole reply, several separated by ';', or after <|python_tag|>,
// where also f.call(a="v") may stand. Llama 3.2 and 4 may write [f(a="v")] instead.
#include "text/tools/call_grammar.h"
#include "text/tools/python_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kTag = "<|python_tag|>";
constexpr std::string_view kMarkers[] = {kTag};

class Llama3 final : public ToolSyntax {
 public:
  const char* name() const override { return "llama3"; }
  bool spoken_by(std::string_view source) const override {
    if (source.find("<tool_call>") != std::string_view::npos) return false;
    if (source.find(kTag) != std::string_view::npos) return true;
    return source.find("<|start_header_id|>") != std::string_view::npos &&
           source.find("\"parameters\"") != std::string_view::npos;
  }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<PythonCallParser>(
        std::move(tools), JsonCallsForm{.marks = {.openers = {kTag}, .first = {"{", "["}}, .between = ";"});
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string>) const override {
    return call_rules(tools, choice, {.between = lark_text("; ")}, [&](const ToolSpec& tool, size_t, std::string&) {
      return lark_text("{\"name\": " + Json(tool.name).dump() + ", \"parameters\": ") + " " +
             lark_json(tool.parameters) + " " + lark_text("}");
    });
  }
};

}  // namespace

const ToolSyntax& llama3_syntax() {
  static const Llama3 kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
