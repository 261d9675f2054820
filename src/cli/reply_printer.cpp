#include "cli/reply_printer.h"

#include "cli/terminal.h"

namespace vedette::cli {

Status ReplyPrinter::write(const ReplyPart& part) {
  if (part.reasoning && !show_reasoning_) return ok_status();
  if (part.reasoning) {
    in_reasoning_ = true;
    return print(dimmed(part.text));
  }
  const bool first_of_answer = in_reasoning_;
  in_reasoning_ = false;
  return print(first_of_answer ? "\n\n" + part.text : part.text);
}

Status ReplyPrinter::add(const ReplyPart& part) {
  return stream_ ? write(part) : ok_status();
}

Status ReplyPrinter::print_whole(const Reply& reply) {
  if (!reply.reasoning.empty()) VEDETTE_RETURN_IF_ERROR(write({true, reply.reasoning}));
  return write({false, reply.answer});
}

}  // namespace vedette::cli
