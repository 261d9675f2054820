#include "text/tools/call_parser.h"

#include <algorithm>

#include "text/tools/json_mender.h"

namespace vedette::text {

CallParser::CallParser(std::vector<ToolSpec> tools, CallMarks marks)
    : tools_(std::move(tools)), marks_(std::move(marks)) {
  broken_marks_ = marks_.openers;
  for (const auto* more : {&marks_.closers, &marks_.dropped})
    broken_marks_.insert(broken_marks_.end(), more->begin(), more->end());
  update_marks();
}

// Openers of the start stand first only while they count, closers only after a call.
void CallParser::update_marks() {
  text_marks_ = marks_.openers;
  if (!content_seen_ && calls_ == 0) text_marks_.insert(text_marks_.end(), marks_.first.begin(), marks_.first.end());
  openers_ = text_marks_.size();
  text_marks_.insert(text_marks_.end(), marks_.dropped.begin(), marks_.dropped.end());
  if (calls_ > 0) text_marks_.insert(text_marks_.end(), marks_.closers.begin(), marks_.closers.end());
}

void CallParser::begin_output(std::vector<MessagePart>& out) {
  out_ = &out;
  own_parts_ = out.size();
}

void CallParser::emit(MessagePart::Kind kind, std::string_view text, bool malformed) {
  const bool event = kind == MessagePart::Kind::kCallBegin || kind == MessagePart::Kind::kCallEnd;
  if (!event && text.empty()) return;
  const bool of_call = event || kind == MessagePart::Kind::kArguments;
  const int call = of_call ? calls_ : 0;
  if (!event && out_->size() > own_parts_ && out_->back().kind == kind && out_->back().call == call) {
    out_->back().text += text;
    return;
  }
  out_->push_back({.kind = kind, .call = call, .text = std::string(text), .malformed = malformed});
}

void CallParser::push(std::string_view text, std::vector<MessagePart>& out) {
  begin_output(out);
  buffer_ += text;
  run();
  compact();
}

void CallParser::run() {
  while (pos_ < buffer_.size()) {
    const char c = buffer_[pos_++];
    switch (mode_) {
      case Mode::kText:
        scan_text();
        break;
      case Mode::kHead:
        if (pos_ - head_ > kMaxHead) {
          give_up();
        } else {
          head(c);
        }
        break;
      case Mode::kBody:
        body(c);
        break;
      case Mode::kBroken:
        scan_broken();
        break;
      case Mode::kStray:
        scan_stray();
        break;
      case Mode::kAfter:
        after(c);
        break;
    }
  }
}

// Drops what has been given out, seldom enough to cost no more than the reading.
void CallParser::compact() {
  const bool holds = mode_ != Mode::kBody && mode_ != Mode::kAfter;
  if (!holds) settle_at(pos_);
  if (held_ < buffer_.size() / 2 && held_ < buffer_.size()) return;
  buffer_.erase(0, held_);
  pos_ -= held_;
  mark_ -= held_;
  head_ -= std::min(head_, held_);
  held_ = 0;
}

void CallParser::settle_at(size_t at) {
  held_ = mark_ = at;
}

// Moves mark_ to the longest end of the text that may become a mark; the index of a complete one.
size_t CallParser::search(std::span<const std::string_view> marks) {
  while (mark_ < pos_) {
    const std::string_view candidate(buffer_.data() + mark_, pos_ - mark_);
    bool possible = false;
    for (size_t i = 0; i < marks.size(); ++i) {
      if (candidate.size() > marks[i].size() || marks[i].substr(0, candidate.size()) != candidate) continue;
      if (candidate.size() == marks[i].size()) return i;
      possible = true;
    }
    if (possible) return kNone;
    ++mark_;
  }
  return kNone;
}

// Gives out held text up to `end` as content. Blank space after a call goes with it only if content came before the
// call, which it then separates.
void CallParser::write_text(size_t end) {
  if (end <= held_) return;
  std::string_view text(buffer_.data() + held_, end - held_);
  if (after_call_ && !content_seen_) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  }
  after_call_ = false;
  emit(MessagePart::Kind::kContent, text);
  held_ = end;
}

// Whether the marks to look for have changed.
bool CallParser::note_content() {
  if (content_seen_) return false;
  content_seen_ = true;
  update_marks();
  return true;
}

void CallParser::scan_text() {
  size_t found = kNone;
  for (bool again = true; again;) {
    again = false;
    const size_t before = mark_;
    found = search(text_marks_);
    // Bytes before mark_ belong to no mark; blank space at their end waits, for it is dropped before a call.
    size_t end = mark_;
    while (end > before && is_blank(buffer_[end - 1])) --end;
    if (end == before) break;
    write_text(end);
    again = note_content();
  }
  if (found == kNone) return;
  if (found >= openers_) {  // a mark that is dropped
    settle_at(pos_);
    after_call_ = true;
    return;
  }
  mode_ = Mode::kHead;
  head_ = pos_;
  opened(found);
}

void CallParser::scan_broken() {
  const size_t found = search(broken_marks_);
  arguments(std::string_view(buffer_).substr(held_, mark_ - held_));
  held_ = mark_;
  if (found == kNone) return;
  const size_t opener_start = mark_;
  end_call(false);
  settle_at(pos_);
  mode_ = Mode::kText;
  if (found >= marks_.openers.size()) return;
  held_ = mark_ = opener_start;
  mode_ = Mode::kHead;
  head_ = pos_;
  opened(found);
}

// Gives out held text up to `end`, without blank space at its end; all before `from` is known to be blank.
void CallParser::write_stray(size_t from, size_t end) {
  while (end > from && is_blank(buffer_[end - 1])) --end;
  if (end == from) return;
  std::string_view text = std::string_view(buffer_).substr(held_, end - held_);
  if (!stray_started_) {
    while (is_blank(text.front())) text.remove_prefix(1);
    if (stray_seen_) emit(stray_kind_, "\n");
    stray_started_ = stray_seen_ = true;
  }
  emit(stray_kind_, text);
  held_ = end;
}

void CallParser::scan_stray() {
  const size_t before = mark_;
  const size_t found = search(stray_marks_);
  write_stray(before, mark_);
  if (found == kNone) return;
  settle_at(pos_);
  mode_ = Mode::kText;
}

const ToolSpec* CallParser::find_tool(std::string_view name) const {
  for (const ToolSpec& tool : tools_)
    if (tool.name == name) return &tool;
  return nullptr;
}

bool CallParser::starts_tool(std::string_view prefix) const {
  return std::any_of(tools_.begin(), tools_.end(), [&](const ToolSpec& t) { return t.name.starts_with(prefix); });
}

void CallParser::give_up() {
  mode_ = Mode::kText;
  write_text(head_);
  pos_ = mark_ = head_;
  note_content();
}

void CallParser::skip_head() {
  settle_at(pos_);
  mode_ = Mode::kText;
}

void CallParser::begin_call(const ToolSpec& tool, bool again) {
  if (again) --pos_;
  settle_at(pos_);
  tool_ = &tool;
  arguments_.clear();
  emit(MessagePart::Kind::kCallBegin, tool.name);
  mode_ = Mode::kBody;
}

void CallParser::arguments(std::string_view piece) {
  arguments_ += piece;
  emit(MessagePart::Kind::kArguments, piece);
}

void CallParser::end_call(bool complete) {
  if (complete && arguments_.empty()) arguments("{}");
  const auto parsed = parse_json(arguments_, "arguments");
  emit(MessagePart::Kind::kCallEnd, "", !parsed.ok() || !parsed.value().is_object());
  ++calls_;
  arguments_.clear();
  after_call_ = true;
  update_marks();
  mode_ = Mode::kAfter;
  settle_at(pos_);
}

void CallParser::broken() {
  settle_at(--pos_);
  mode_ = Mode::kBroken;
}

void CallParser::stray(MessagePart::Kind kind, std::vector<std::string_view> ends) {
  settle_at(pos_);
  stray_kind_ = kind;
  stray_marks_ = std::move(ends);
  stray_started_ = false;
  mode_ = Mode::kStray;
}

void CallParser::to_text(bool again) {
  if (again) --pos_;
  settle_at(pos_);
  mode_ = Mode::kText;
}

void CallParser::hold_again(size_t opener) {
  settle_at(pos_ - 1);
  head_ = pos_;
  mode_ = Mode::kHead;
  opened(opener);
}

void CallParser::finish(std::vector<MessagePart>& out) {
  begin_output(out);
  while (mode_ == Mode::kHead) {
    give_up();
    run();
  }
  if (mode_ == Mode::kText) {
    // What is held is blank space and the start of a mark; blank space alone after a call was part of its markup.
    if (!(after_call_ && mark_ == pos_)) write_text(pos_);
  } else if (mode_ == Mode::kStray) {
    write_stray(mark_, pos_);
  } else if (mode_ == Mode::kBroken) {
    arguments(std::string_view(buffer_).substr(held_, pos_ - held_));
    end_call(false);
  } else if (mode_ == Mode::kBody) {
    end_call(cut());
  }
  buffer_.clear();
  pos_ = held_ = mark_ = head_ = 0;
  mode_ = Mode::kText;
}

}  // namespace vedette::text
