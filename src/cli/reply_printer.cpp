#include "cli/reply_printer.h"

#include "cli/terminal.h"

namespace vedette::cli {

Status ReplyPrinter::write(const text::MessagePart& part) {
  const bool reasoning = part.kind == text::MessagePart::Kind::kReasoning;
  if (reasoning && !show_reasoning_) return ok_status();
  if (reasoning) {
    in_reasoning_ = true;
    return print(dimmed(part.text));
  }
  const bool first_of_answer = in_reasoning_;
  in_reasoning_ = false;
  return print(first_of_answer ? "\n\n" + part.text : part.text);
}

Status ReplyPrinter::add(const text::MessagePart& part) {
  return stream_ ? write(part) : ok_status();
}

Status ReplyPrinter::print_whole(const Reply& reply) {
  using Kind = text::MessagePart::Kind;
  if (!reply.answer.reasoning.empty())
    VEDETTE_RETURN_IF_ERROR(write({.kind = Kind::kReasoning, .text = reply.answer.reasoning}));
  if (reply.answer.content.empty()) return ok_status();
  return write({.kind = Kind::kContent, .text = reply.answer.content});
}

}  // namespace vedette::cli
