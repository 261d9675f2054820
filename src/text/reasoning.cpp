#include "text/reasoning.h"

#include <array>

#include "text/tools/json_mender.h"

namespace vedette::text {
namespace {

struct KnownPair {
  std::string_view told_by;  // a text of the template
  std::string_view open, close;
};

// Most telling first. Pairs whose opening mark ends with <|message|> are channels.
constexpr std::array kPairs = {
    KnownPair{"<|channel|>analysis", "<|channel|>analysis<|message|>", "<|end|>"},
    KnownPair{"to=self", "to=self<|message|>", "<|eom|>"},
    KnownPair{"<|channel>", "<|channel>thought", "<channel|>"},
    KnownPair{"[THINK]", "[THINK]", "[/THINK]"},
    KnownPair{"<|START_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"},
    KnownPair{"<seed:think>", "<seed:think>", "</seed:think>"},
    KnownPair{"<mm:think>", "<mm:think>", "</mm:think>"},
    KnownPair{"◁think▷", "◁think▷", "◁/think▷"},
    KnownPair{"<|inner_prefix|>", "<|inner_prefix|>", "<|inner_suffix|>"},
    KnownPair{"<|begin_of_thought|>", "<|begin_of_thought|>", "<|end_of_thought|>"},
    KnownPair{"</think>", "<think>", "</think>"},
    KnownPair{"<think>", "<think>", "</think>"},
    KnownPair{"</thinking>", "<thinking>", "</thinking>"},
    KnownPair{"</thought>", "<thought>", "</thought>"},
    KnownPair{"</reasoning>", "<reasoning>", "</reasoning>"},
};

// What templates write between a user's text and the reply. An opening mark before one of these was the user's.
constexpr std::array<std::string_view, 8> kTurnMarks = {"<|",   "<｜",        "[/INST]", "<start_of_turn>",
                                                        "]~b]", "<seed:bos>", "<turn",   "</s>"};

}  // namespace

std::optional<ReasoningMarks> detect_reasoning(std::string_view template_source) {
  for (const KnownPair& pair : kPairs) {
    if (template_source.find(pair.told_by) == std::string_view::npos) continue;
    return ReasoningMarks{std::string(pair.open), std::string(pair.close)};
  }
  return std::nullopt;
}

bool opened_in_prompt(const ReasoningMarks& marks, std::string_view prompt_tail) {
  const size_t open = prompt_tail.rfind(marks.open);
  if (open == std::string_view::npos) return false;
  const std::string_view rest = prompt_tail.substr(open + marks.open.size());
  if (rest.find(marks.close) != std::string_view::npos) return false;
  for (std::string_view mark : kTurnMarks)
    if (rest.find(mark) != std::string_view::npos) return false;
  return true;
}

ReasoningSplitter::ReasoningSplitter(ReasoningMarks marks, bool inside)
    : marks_(std::move(marks)), state_(inside ? State::kInside : State::kStart) {}

void ReasoningSplitter::push(std::string_view text, Output& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (state_ == State::kContent) {
      out.content += text.substr(i);
      return;
    }
    step(text[i], out);
  }
}

void ReasoningSplitter::step(char c, Output& out) {
  if (state_ == State::kStart) return start(c, out);
  inside(c, out);
}

void ReasoningSplitter::start(char c, Output& out) {
  if (held_.empty() && is_blank(c)) {
    blank_ += c;
    return;
  }
  held_ += c;
  const bool opens = marks_.open.starts_with(held_);
  const bool closes = !block_seen_ && marks_.close.starts_with(held_);
  if (opens && held_.size() == marks_.open.size()) {
    state_ = State::kInside;
  } else if (closes && held_.size() == marks_.close.size()) {
    block_seen_ = true;
  } else if (opens || closes) {
    return;
  } else {
    state_ = State::kContent;
    // Blank space before content is content, after a block it belongs to the mark.
    out.content += (block_seen_ ? "" : blank_) + held_;
  }
  block_begun_ = false;
  held_.clear();
  blank_.clear();
}

void ReasoningSplitter::write_reasoning(std::string_view text, Output& out) {
  if (text.empty()) return;
  if (!block_begun_ && reasoning_seen_) out.reasoning += '\n';
  if (block_begun_) out.reasoning += blank_;
  blank_.clear();
  out.reasoning += text;
  block_begun_ = reasoning_seen_ = true;
}

void ReasoningSplitter::inside(char c, Output& out) {
  held_ += c;
  // What cannot begin the closing mark is reasoning; blank space waits for what follows it.
  size_t settled = 0;
  while (settled < held_.size() && !marks_.close.starts_with(std::string_view(held_).substr(settled))) ++settled;
  size_t text = 0;
  for (size_t i = 0; i < settled; ++i) {
    if (is_blank(held_[i])) continue;
    write_reasoning(std::string_view(held_).substr(text, i + 1 - text), out);
    text = i + 1;
  }
  blank_ += std::string_view(held_).substr(text, settled - text);
  held_.erase(0, settled);
  if (held_.size() < marks_.close.size()) return;
  held_.clear();
  blank_.clear();
  block_seen_ = true;
  state_ = State::kStart;
}

void ReasoningSplitter::finish(Output& out) {
  if (state_ == State::kStart) out.content += (block_seen_ ? "" : blank_) + held_;
  if (state_ == State::kInside) write_reasoning(held_, out);
  held_.clear();
  blank_.clear();
}

}  // namespace vedette::text
