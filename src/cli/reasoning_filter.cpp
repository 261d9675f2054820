#include "cli/reasoning_filter.h"

#include <algorithm>
#include <array>

namespace vedette::cli {
namespace {

struct Marks {
  std::string_view open, close;
};
constexpr std::array<Marks, 6> kMarks = {{{"<think>", "</think>"},
                                          {"<thinking>", "</thinking>"},
                                          {"<reasoning>", "</reasoning>"},
                                          {"<seed:think>", "</seed:think>"},
                                          {"[THINK]", "[/THINK]"},
                                          {"<|channel>thought", "<channel|>"}}};
constexpr std::string_view kBlank = " \t\r\n";

std::string_view without_leading_blank(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

// Length of the longest end of text that is a proper beginning of mark.
size_t open_end(std::string_view text, std::string_view mark) {
  for (size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length) {
    if (text.ends_with(mark.substr(0, length))) return length;
  }
  return 0;
}

void emit(std::vector<ReplyPart>& out, bool reasoning, std::string_view text) {
  if (text.empty()) return;
  if (!out.empty() && out.back().reasoning == reasoning)
    out.back().text += text;
  else
    out.push_back({reasoning, std::string(text)});
}

}  // namespace

ReasoningFilter::ReasoningFilter(std::string_view prompt) {
  const size_t end = prompt.find_last_not_of(kBlank);
  if (end == std::string_view::npos) return;
  prompt = prompt.substr(0, end + 1);
  for (size_t i = 0; i < kMarks.size(); ++i) {
    if (!prompt.ends_with(kMarks[i].open)) continue;
    state_ = State::kReasoning;
    mark_ = i;
  }
}

// Each step decides some of held_; false: more text is needed.
bool ReasoningFilter::step_start(std::vector<ReplyPart>& out) {
  const std::string_view text = without_leading_blank(held_);
  if (text.empty()) return false;
  bool undecided = false;
  for (size_t i = 0; i < kMarks.size(); ++i) {
    if (text.starts_with(kMarks[i].open)) {
      held_ = std::string(text.substr(kMarks[i].open.size()));
      mark_ = i;
      state_ = State::kReasoning;
      return true;
    }
    undecided = undecided || kMarks[i].open.starts_with(text);
  }
  if (undecided) return false;
  emit(out, false, held_);
  held_.clear();
  state_ = State::kAnswer;
  return false;
}

bool ReasoningFilter::step_reasoning(std::vector<ReplyPart>& out) {
  if (!reasoning_begun_) {
    held_ = std::string(without_leading_blank(held_));
    if (held_.empty()) return false;
    reasoning_begun_ = true;
  }
  const std::string_view close = kMarks[mark_].close;
  const size_t at = held_.find(close);
  if (at == std::string::npos) {
    const size_t keep = open_end(held_, close);
    emit(out, true, std::string_view(held_).substr(0, held_.size() - keep));
    held_.erase(0, held_.size() - keep);
    return false;
  }
  emit(out, true, std::string_view(held_).substr(0, at));
  held_.erase(0, at + close.size());
  state_ = State::kAfterReasoning;
  return true;
}

bool ReasoningFilter::step(std::vector<ReplyPart>& out) {
  switch (state_) {
    case State::kStart:
      return step_start(out);
    case State::kReasoning:
      return step_reasoning(out);
    case State::kAfterReasoning:
      held_ = std::string(without_leading_blank(held_));
      if (held_.empty()) return false;
      state_ = State::kAnswer;
      return true;
    case State::kAnswer:
      emit(out, false, held_);
      held_.clear();
      return false;
  }
  return false;
}

std::vector<ReplyPart> ReasoningFilter::push(std::string_view text) {
  std::vector<ReplyPart> out;
  held_ += text;
  while (!held_.empty() && step(out)) {
  }
  return out;
}

std::vector<ReplyPart> ReasoningFilter::finish() {
  std::vector<ReplyPart> out;
  if (state_ != State::kAfterReasoning) emit(out, state_ == State::kReasoning, held_);
  held_.clear();
  return out;
}

}  // namespace vedette::cli
