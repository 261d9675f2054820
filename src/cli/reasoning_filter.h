// Splits a reply into the model's reasoning and its answer, as text arrives.
//
// Reasoning stands between an opening and a closing mark at the reply's start. The chat template may have opened it
// already. Nothing is taken back: text that may still become a mark is held until it is decided. One per reply.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vedette::cli {

struct ReplyPart {
  bool reasoning = false;
  std::string text;
  bool operator==(const ReplyPart&) const = default;
};

class ReasoningFilter {
 public:
  // prompt: the rendered prompt; if it ends with an opening mark, the reply starts inside the reasoning.
  explicit ReasoningFilter(std::string_view prompt = {});
  // What this text decides; marks and the blank space around them are dropped.
  std::vector<ReplyPart> push(std::string_view text);
  // What is still held.
  std::vector<ReplyPart> finish();

 private:
  enum class State { kStart, kReasoning, kAfterReasoning, kAnswer };
  bool step(std::vector<ReplyPart>& out);
  bool step_start(std::vector<ReplyPart>& out);
  bool step_reasoning(std::vector<ReplyPart>& out);

  State state_ = State::kStart;
  size_t mark_ = 0;  // index of the pair of marks in use
  bool reasoning_begun_ = false;
  std::string held_;
};

}  // namespace vedette::cli
