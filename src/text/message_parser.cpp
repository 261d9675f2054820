#include "text/message_parser.h"

#include "text/reasoning.h"
#include "text/tools/call_parser.h"
#include "text/tools/syntaxes.h"

namespace vedette::text {
namespace {

constexpr std::string_view kChannelEnd = "<|message|>";

// A pair of marks that stands for a channel is read by the tool syntax of its family, which knows all channels.
const ToolSyntax* channel_syntax(const MessageFormat& format) {
  const bool own = format.tools == &harmony_syntax() || format.tools == &atem_syntax();
  const bool channels = format.reasoning && format.reasoning->open.ends_with(kChannelEnd);
  if (own && (channels || !format.reasoning)) return format.tools;
  if (!channels) return nullptr;
  return format.reasoning->open.starts_with("<|channel|>") ? &harmony_syntax() : &atem_syntax();
}

ReasoningMarks channel_marks(const ToolSyntax& syntax) {
  if (&syntax == &harmony_syntax()) return {"<|channel|>analysis<|message|>", "<|end|>"};
  return {"to=self<|message|>", "<|eom|>"};
}

void append(MessagePart::Kind kind, std::string text, std::vector<MessagePart>& out) {
  if (!text.empty()) out.push_back({.kind = kind, .text = std::move(text)});
}

}  // namespace

struct MessageParser::Impl {
  std::optional<ReasoningSplitter> splitter;
  std::unique_ptr<ToolCallParser> calls;
  ChannelReader* channels = nullptr;  // *calls where it reads channels

  void give(ReasoningSplitter::Output& pieces, std::vector<MessagePart>& out) {
    append(MessagePart::Kind::kReasoning, std::move(pieces.reasoning), out);
    give_content(pieces.content, out);
  }
  void give_content(std::string_view text, std::vector<MessagePart>& out) {
    if (calls != nullptr) {
      calls->push(text, out);
    } else {
      append(MessagePart::Kind::kContent, std::string(text), out);
    }
  }
};

MessageParser::MessageParser(const MessageFormat& format, std::vector<ToolSpec> tools, std::string_view prompt_tail)
    : impl_(std::make_unique<Impl>()) {
  if (const ToolSyntax* syntax = channel_syntax(format)) {
    if (format.tools == nullptr) tools.clear();
    impl_->calls = syntax->parser(std::move(tools));
    impl_->channels = dynamic_cast<ChannelReader*>(impl_->calls.get());
    if (opened_in_prompt(channel_marks(*syntax), prompt_tail)) impl_->channels->begin_in_reasoning();
    return;
  }
  if (format.reasoning) {
    impl_->splitter.emplace(*format.reasoning, opened_in_prompt(*format.reasoning, prompt_tail));
  }
  if (format.tools != nullptr && !tools.empty()) impl_->calls = format.tools->parser(std::move(tools));
}

MessageParser::MessageParser(MessageParser&&) noexcept = default;
MessageParser& MessageParser::operator=(MessageParser&&) noexcept = default;
MessageParser::~MessageParser() = default;

void MessageParser::push(std::string_view text, std::vector<MessagePart>& out) {
  if (!impl_->splitter) return impl_->give_content(text, out);
  ReasoningSplitter::Output pieces;
  impl_->splitter->push(text, pieces);
  impl_->give(pieces, out);
}

void MessageParser::finish(std::vector<MessagePart>& out) {
  if (impl_->splitter) {
    ReasoningSplitter::Output pieces;
    impl_->splitter->finish(pieces);
    impl_->give(pieces, out);
  }
  if (impl_->calls != nullptr) impl_->calls->finish(out);
}

bool MessageParser::in_reasoning() const {
  if (impl_->channels != nullptr) return impl_->channels->in_reasoning();
  return impl_->splitter && impl_->splitter->in_reasoning();
}

}  // namespace vedette::text
