// What the tool syntaxes share: the search for marks in running text, text held until it is known to be a call, and
// the parts of a call. A subclass reads a call byte by byte, so its result cannot depend on how the text was cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/message_parser.h"

namespace vedette::text {

// Marks that a syntax looks for in running text.
struct CallMarks {
  std::vector<std::string_view> openers = {};  // may begin a call
  std::vector<std::string_view> closers = {};  // belong to no text once a call has been seen
  std::vector<std::string_view> dropped = {};  // belong to no text ever
  std::vector<std::string_view> first = {};    // openers only where nothing but blank space came before
};

// A parser of a format that marks reasoning itself, by channels.
class ChannelReader {
 public:
  virtual ~ChannelReader() = default;
  virtual bool in_reasoning() const = 0;
  virtual void begin_in_reasoning() = 0;  // the prompt has opened the block; before any text
};

class CallParser : public ToolCallParser {
 public:
  void push(std::string_view text, std::vector<MessagePart>& out) final;
  void finish(std::vector<MessagePart>& out) final;

 protected:
  CallParser(std::vector<ToolSpec> tools, CallMarks marks);

  // An opener (index into openers, then first) has been read. What follows goes to head() until it calls begin_call,
  // give_up or skip_head.
  virtual void opened(size_t opener) = 0;
  // One byte of what stands between an opener and a known name; head_text() ends with it.
  virtual void head(char c) = 0;
  // One byte of a call that has begun.
  virtual void body(char c) = 0;
  // One byte after a call, until to_text or hold_again.
  virtual void after(char) { to_text(true); }
  // The text ends within a call: writes what was held back. Returns whether the arguments are complete.
  virtual bool cut() = 0;

  const ToolSpec* find_tool(std::string_view name) const;
  bool starts_tool(std::string_view prefix) const;  // some tool's name starts so

  std::string_view head_text() const { return std::string_view(buffer_).substr(head_, pos_ - head_); }
  // The held text was no call: the opener is content, what follows it is read again.
  void give_up();
  // The held text belongs neither to content nor to a call.
  void skip_head();
  // The call has begun; `again`: the last byte is the first of the body.
  void begin_call(const ToolSpec& tool, bool again = false);
  void arguments(std::string_view piece);
  // The call has ended; without arguments it gets {} if complete. Then after().
  void end_call(bool complete);
  // The arguments are not as the syntax has them: from the last byte on (kept), everything up to a closer is raw.
  void broken();
  // What follows up to one of `ends` is no content but of this kind, blank space around it dropped.
  void stray(MessagePart::Kind kind, std::vector<std::string_view> ends);
  void to_text(bool again);
  // After a call: the last byte may begin another one in the same frame.
  void hold_again(size_t opener);

  char last_byte() const { return buffer_[pos_ - 1]; }
  bool in_stray() const { return mode_ == Mode::kStray; }
  bool has_arguments() const { return !arguments_.empty(); }
  const ToolSpec* tool() const { return tool_; }

 private:
  enum class Mode : uint8_t { kText, kHead, kBody, kBroken, kStray, kAfter };
  static constexpr size_t kNone = ~size_t{0};
  static constexpr size_t kMaxHead = size_t{1} << 20;

  void begin_output(std::vector<MessagePart>& out);
  void run();
  void compact();
  void scan_text();
  void scan_broken();
  void scan_stray();
  void write_stray(size_t from, size_t end);
  size_t search(std::span<const std::string_view> marks);
  void write_text(size_t end);
  void settle_at(size_t at);
  void emit(MessagePart::Kind kind, std::string_view text, bool malformed = false);
  void update_marks();
  bool note_content();

  std::vector<ToolSpec> tools_;
  CallMarks marks_;
  std::vector<std::string_view> text_marks_;  // those searched for in running text at this point
  size_t openers_ = 0;                        // of text_marks_, the first so many are openers
  std::vector<std::string_view> broken_marks_;
  std::vector<std::string_view> stray_marks_;
  MessagePart::Kind stray_kind_ = MessagePart::Kind::kReasoning;
  bool stray_started_ = false;
  bool stray_seen_ = false;

  Mode mode_ = Mode::kText;
  std::string buffer_;  // text from held_ on, not yet given out
  size_t pos_ = 0;      // the next byte to read
  size_t held_ = 0;     // the first byte not given out
  size_t mark_ = 0;     // where the mark begins that may be ending at pos_
  size_t head_ = 0;     // kHead: the first byte after the opener

  const ToolSpec* tool_ = nullptr;
  std::string arguments_;  // of this call
  int calls_ = 0;
  bool content_seen_ = false;
  bool after_call_ = false;  // nothing but blank space came since the last call

  std::vector<MessagePart>* out_ = nullptr;
  size_t own_parts_ = 0;  // parts of *out_ from here on are of this push
};

}  // namespace vedette::text
