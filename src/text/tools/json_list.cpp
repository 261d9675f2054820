// A list of objects after an opener: Granite 3 <|tool_call|>[..], Command R <|START_ACTION|>[..]<|END_ACTION|>,
// MiniMax-M1 and Apriel <tool_calls>..</tool_calls>, Nemotron Nano <TOOLCALL>[..]</TOOLCALL>, functools[..].
#include "text/tools/call_grammar.h"
#include "text/tools/json_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kMarkers[] = {"<|tool_call|>", "<|START_ACTION|>", "<|END_ACTION|>", "<tool_calls>",
                                         "</tool_calls>"};

class JsonList final : public ToolSyntax {
 public:
  const char* name() const override { return "json_list"; }
  bool spoken_by(std::string_view source) const override {
    for (std::string_view mark : {"<|tool_call|>", "<|START_ACTION|>", "<tool_calls>", "<TOOLCALL>", "functools["})
      if (source.find(mark) != std::string_view::npos) return true;
    return false;
  }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<JsonCallParser>(
        std::move(tools), JsonCallsForm{.marks = {.openers = {"<|tool_call|>", "<|START_ACTION|>", "<tool_calls>",
                                                              "<TOOLCALL>", "functools"},
                                                  .closers = {"<|END_ACTION|>", "</tool_calls>", "</TOOLCALL>"}}});
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    // The opener that is a token of the vocabulary, else <tool_calls>.
    std::string open = lark_mark("<tool_calls>", special), close = lark_marked("]</tool_calls>", special);
    std::string_view key = "\"arguments\": ", name_key = "{\"name\": ";
    for (const std::string& token : special) {
      if (token == "<|tool_call|>") open = lark_mark(token, special), close = lark_text("]");
      if (token == "<|START_ACTION|>") {
        open = lark_mark(token, special);
        close = lark_text("]") + " " + lark_mark("<|END_ACTION|>", special);
        key = "\"parameters\": ";
        name_key = "{\"tool_name\": ";
      }
    }
    return call_rules(tools, choice, {.open = open + " " + lark_text("["), .between = lark_text(", "), .close = close},
                      [&](const ToolSpec& tool, size_t, std::string&) {
                        const std::string head = std::string(name_key) + Json(tool.name).dump() + ", ";
                        return lark_text(head + std::string(key)) + " " + lark_json(tool.parameters) + " " +
                               lark_text("}");
                      });
  }
};

}  // namespace

const ToolSyntax& json_list_syntax() {
  static const JsonList kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
