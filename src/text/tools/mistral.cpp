// Mistral: [TOOL_CALLS][{"name": .., "arguments": {..}}], since 2025 [TOOL_CALLS]NAME[ARGS]{..}, some with [CALL_ID]ID
// before [ARGS] or with no mark before the arguments.
#include "text/tools/call_grammar.h"
#include "text/tools/head_cursor.h"
#include "text/tools/json_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "[TOOL_CALLS]", kArgs = "[ARGS]", kCallId = "[CALL_ID]", kClose = "[/TOOL_CALLS]";
constexpr std::string_view kMarkers[] = {kOpen, kArgs, kCallId, "[TOOL_CONTENT]"};

class MistralParser final : public JsonCallParser {
 public:
  explicit MistralParser(std::vector<ToolSpec> tools)
      : JsonCallParser(std::move(tools), {.marks = {.openers = {kOpen}, .closers = {kClose}}}) {}

 private:
  void opened(size_t opener) override {
    JsonCallParser::opened(opener);
    form_ = in_object() ? Form::kObjects : Form::kUnknown;
  }
  void head(char c) override {
    if (form_ == Form::kUnknown && !is_blank(c)) form_ = c == '[' || c == '{' ? Form::kObjects : Form::kNamed;
    if (form_ != Form::kNamed) return JsonCallParser::head(c);
    HeadCursor cursor(head_text());
    std::string_view name, id;
    cursor.blank().until("[{", name);
    if (cursor.failed() || !starts_tool(trim_blank(name))) return give_up();
    char first = cursor.peek();
    const bool direct = first == '{';
    if (!direct && !cursor.stopped()) {
      const std::string_view rest = head_text().substr(name.data() + name.size() - head_text().data());
      if (kCallId.starts_with(rest.substr(0, kCallId.size()))) cursor.literal(kCallId).until("[", id);
      cursor.literal(kArgs);
    }
    if (cursor.failed()) return give_up();
    if (cursor.more()) return;
    const ToolSpec* tool = find_tool(trim_blank(name));
    if (tool == nullptr) return give_up();
    begin_plain(*tool, direct);
  }

  enum class Form : uint8_t { kUnknown, kObjects, kNamed };
  Form form_ = Form::kUnknown;
};

class Mistral final : public ToolSyntax {
 public:
  const char* name() const override { return "mistral"; }
  bool spoken_by(std::string_view source) const override { return source.find(kOpen) != std::string_view::npos; }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<MistralParser>(std::move(tools));
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string open = lark_mark(kOpen, special), args = lark_mark(kArgs, special);
    bool named = false;
    for (const std::string& token : special) named = named || token == kArgs;
    if (named) {
      return call_rules(tools, choice, {}, [&](const ToolSpec& tool, size_t, std::string&) {
        return open + " " + lark_text(tool.name) + " " + args + " " + lark_json(tool.parameters);
      });
    }
    return call_rules(tools, choice,
                      {.open = open + " " + lark_text("["), .between = lark_text(", "), .close = lark_text("]")},
                      [&](const ToolSpec& tool, size_t, std::string&) {
                        return lark_text("{\"name\": " + Json(tool.name).dump() + ", \"arguments\": ") + " " +
                               lark_json(tool.parameters) + " /(, \"id\": \"[a-zA-Z0-9]{9}\")?/ " + lark_text("}");
                      });
  }
};

}  // namespace

const ToolSyntax& mistral_syntax() {
  static const Mistral kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
