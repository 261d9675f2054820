// ATEM (Muse): <atem:function_calls>\n<atem:invoke name="NAME">\n<atem:parameter name="KEY">VALUE</atem:parameter>\n
// </atem:invoke>\n</atem:function_calls>. The models frame messages as channels: " to=self<|message|>..<|eom|>" is
// reasoning, " to=user<|message|>..<|eot|>" the answer, " to=NAME<|message|>" stands before a call.
#include "text/tools/call_grammar.h"
#include "text/tools/head_cursor.h"
#include "text/tools/syntaxes.h"
#include "text/tools/xml_calls.h"

namespace vedette::text {
namespace {

constexpr std::string_view kOpen = "<atem:function_calls>", kClose = "</atem:function_calls>";
constexpr std::string_view kStart = "<|start|>assistant", kMessage = "<|message|>", kEom = "<|eom|>", kEot = "<|eot|>";
constexpr std::string_view kMarkers[] = {"<|start|>", kMessage, kEom, kEot};

XmlForm form() {
  return {.wrappers = {kOpen},
          .wrapper_closers = {kClose},
          .call_open = "<atem:invoke name=\"",
          .name_stops = "\"",
          .name_end = "\"",
          .call_close = "</atem:invoke>",
          .parameter_open = "<atem:parameter name=\"",
          .key_end = "\"",
          .attributes = true,
          .value_close = "</atem:parameter>",
          .any_json = true,
          .more_openers = {kStart},
          .first = {"to="},
          .dropped = {kEom, kEot}};
}

class AtemParser final : public XmlCallParser, public ChannelReader {
 public:
  explicit AtemParser(std::vector<ToolSpec> tools) : XmlCallParser(std::move(tools), form()) {}
  bool in_reasoning() const override { return in_stray(); }
  void begin_in_reasoning() override { stray(MessagePart::Kind::kReasoning, {kEom, kEot}); }

 private:
  void head(char c) override {
    if (opener() < call_openers()) return XmlCallParser::head(c);
    // A message's header. The recipient of a call names the tool, but the call's own tag says it again.
    std::string_view recipient;
    HeadCursor cursor(head_text());
    cursor.blank();
    if (opener() == call_openers()) cursor.optional("to=");
    cursor.until("<", recipient).literal(kMessage);
    if (cursor.failed() || recipient.find('\n') != std::string_view::npos) return give_up();
    if (cursor.more()) return;
    if (trim_blank(recipient) == "self") return begin_in_reasoning();
    skip_head();
  }
};

class Atem final : public ToolSyntax {
 public:
  const char* name() const override { return "atem"; }
  bool spoken_by(std::string_view source) const override {
    return source.find("<atem:invoke") != std::string_view::npos;
  }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<AtemParser>(std::move(tools));
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string start = "(" + lark_mark("<|start|>", special) + " " + lark_text("assistant") + ")?";
    bool channels = false;
    for (const std::string& token : special) channels = channels || token == kMessage;
    CallFrame frame{.between = channels ? lark_mark(kEom, special) : lark_text("\n")};
    return call_rules(tools, choice, frame, [&](const ToolSpec& tool, size_t n, std::string& rules) {
      const std::string header =
          channels ? start + " " + lark_text(" to=" + tool.name) + " " + lark_mark(kMessage, special) + " " : "";
      return header + lark_text(std::string(kOpen) + "\n") + " " + xml_call_body(form(), tool, n, rules) + " " +
             lark_text(kClose);
    });
  }
};

}  // namespace

const ToolSyntax& atem_syntax() {
  static const Atem kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
