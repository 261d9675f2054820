// gpt-oss (harmony): messages <|channel|>NAME<|message|>..<|end|> with channel analysis (reasoning), final or
// commentary (content), and calls as commentary with a recipient: to=functions.NAME, arguments as JSON.
#include "text/tools/call_grammar.h"
#include "text/tools/head_cursor.h"
#include "text/tools/json_calls.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kStart = "<|start|>assistant", kChannel = "<|channel|>", kMessage = "<|message|>";
constexpr std::string_view kEnd = "<|end|>", kReturn = "<|return|>", kCall = "<|call|>";
constexpr std::string_view kMarkers[] = {"<|start|>", kChannel, kMessage, "<|constrain|>", kEnd, kReturn, kCall};
constexpr std::string_view kFunctions = "functions.", kRecipient = "to=";

std::string_view word_after(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + mark.size());
  return text.substr(0, text.find_first_of(" \n<"));
}

class HarmonyParser final : public JsonCallParser, public ChannelReader {
 public:
  explicit HarmonyParser(std::vector<ToolSpec> tools)
      : JsonCallParser(
            std::move(tools),
            {.marks = {.openers = {kStart, kChannel}, .dropped = {kEnd, kReturn, kCall}, .first = {kRecipient}}}) {}
  bool in_reasoning() const override { return in_stray(); }
  void begin_in_reasoning() override { stray(MessagePart::Kind::kReasoning, {kEnd, kReturn, kCall}); }

 private:
  void opened(size_t opener) override { header_ = opener == 0 ? kStart : opener == 1 ? kChannel : kRecipient; }
  void head(char c) override {
    const std::string_view text = head_text();
    if (text.size() > HeadCursor::kMaxHead) return give_up();
    if (c != '>' || !text.ends_with(kMessage)) return;
    const std::string header = std::string(header_) + std::string(text);
    std::string_view recipient = word_after(header, kRecipient);
    if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
    if (!recipient.empty() && recipient != "user") {
      const ToolSpec* tool = find_tool(recipient);
      return tool == nullptr ? give_up() : begin_plain(*tool, false);
    }
    if (word_after(header, kChannel) == "analysis") return begin_in_reasoning();
    skip_head();
  }

  std::string_view header_;
};

class Harmony final : public ToolSyntax {
 public:
  const char* name() const override { return "harmony"; }
  bool spoken_by(std::string_view source) const override {
    return source.find(kChannel) != std::string_view::npos && source.find(kMessage) != std::string_view::npos &&
           source.find("commentary") != std::string_view::npos;
  }
  std::span<const std::string_view> markers() const override { return kMarkers; }
  std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const override {
    return std::make_unique<HarmonyParser>(std::move(tools));
  }
  std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                           std::span<const std::string> special) const override {
    const std::string start = lark_mark("<|start|>", special) + " " + lark_text("assistant");
    const std::string channel = lark_mark(kChannel, special), message = lark_mark(kMessage, special);
    const std::string constrain = lark_mark("<|constrain|>", special);
    return call_rules(tools, choice, {.open = "(" + start + ")?", .between = lark_mark(kCall, special) + " " + start},
                      [&](const ToolSpec& tool, size_t, std::string&) {
                        return channel + " " + lark_text("commentary to=functions." + tool.name + " ") + " " +
                               constrain + " " + lark_text("json") + " " + message + " " + lark_json(tool.parameters);
                      });
  }
};

}  // namespace

const ToolSyntax& harmony_syntax() {
  static const Harmony kSyntax;
  return kSyntax;
}

}  // namespace vedette::text
