// Splits the reasoning at the start of a reply from what follows it.
#pragma once

#include <string>
#include <string_view>

#include "text/message_parser.h"

namespace vedette::text {

// Whether the end of a rendered prompt lies within a block that it has opened.
bool opened_in_prompt(const ReasoningMarks& marks, std::string_view prompt_tail);

// Blocks count only where nothing but blank space and other blocks stands before them: a block after content is
// content. Blank space around the marks is dropped, a block without end reaches to the end of the text, and a closing
// mark at the very start is dropped (the block was opened and closed empty by the prompt).
class ReasoningSplitter {
 public:
  ReasoningSplitter(ReasoningMarks marks, bool inside);

  struct Output {
    std::string reasoning, content;
  };
  void push(std::string_view text, Output& out);
  void finish(Output& out);
  bool in_reasoning() const { return state_ == State::kInside; }

 private:
  enum class State : uint8_t { kStart, kInside, kContent };
  void step(char c, Output& out);
  void start(char c, Output& out);
  void inside(char c, Output& out);
  void write_reasoning(std::string_view text, Output& out);

  ReasoningMarks marks_;
  State state_;
  bool block_seen_ = false;
  bool block_begun_ = false;     // this block has text already
  bool reasoning_seen_ = false;  // any block had text
  std::string blank_;            // blank space whose fate is open
  std::string held_;             // what may become a mark
};

}  // namespace vedette::text
