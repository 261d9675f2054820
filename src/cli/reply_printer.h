// A reply on standard output: the answer, and the reasoning (dimmed) if asked for.
#pragma once

#include "base/result.h"
#include "cli/talk.h"
#include "text/message_parser.h"

namespace vedette::cli {

class ReplyPrinter {
 public:
  ReplyPrinter(bool show_reasoning, bool stream) : show_reasoning_(show_reasoning), stream_(stream) {}
  Status add(const text::MessagePart& part);  // does nothing unless streaming
  Status print_whole(const Reply& reply);

 private:
  Status write(const text::MessagePart& part);
  bool show_reasoning_, stream_;
  bool in_reasoning_ = false;
};

}  // namespace vedette::cli
