// From a reply's text to its parts: reasoning, content, tool calls. Incremental and monotonic: what was emitted is
// never taken back, and the parts do not depend on how the text was cut.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace vedette::text {

// A function of the request. parameters: its JSON schema, or null.
struct ToolSpec {
  std::string name;
  std::string description = {};
  Json parameters = {};
  bool strict = false;
};

struct MessagePart {
  enum class Kind : uint8_t {
    kReasoning,  // text
    kContent,    // text
    kCallBegin,  // text: the name, one of the request's tools
    kArguments,  // text: a piece of the arguments; all pieces of a call together are one JSON object
    kCallEnd,    // `malformed` where the pieces are no JSON object (raw text as the model wrote it)
  };
  Kind kind = Kind::kContent;
  int call = 0;  // index of the call, from 0
  std::string text = {};
  bool malformed = false;
  bool operator==(const MessagePart&) const = default;
};

enum class ToolChoiceKind : uint8_t { kAuto, kNone, kRequired, kNamed };
struct ToolChoice {
  ToolChoiceKind kind = ToolChoiceKind::kAuto;
  std::string name = {};  // kNamed
  bool parallel = true;   // several calls in one reply
};

// The state of one tool syntax within one reply. It is given all text after reasoning.
class ToolCallParser {
 public:
  virtual ~ToolCallParser() = default;
  virtual void push(std::string_view text, std::vector<MessagePart>& out) = 0;
  // The text has ended, maybe within a call.
  virtual void finish(std::vector<MessagePart>& out) = 0;
};

// One way of writing tool calls; one file each in text/tools/, listed in text/tools/registry.cpp. Immutable.
class ToolSyntax {
 public:
  virtual ~ToolSyntax() = default;
  virtual const char* name() const = 0;
  // Whether a chat template (its source) speaks this syntax. The first of the registry that says so is taken.
  virtual bool spoken_by(std::string_view template_source) const = 0;
  // Markers that the vocabulary may hold as special tokens; their text must reach the parser.
  virtual std::span<const std::string_view> markers() const = 0;
  virtual std::unique_ptr<ToolCallParser> parser(std::vector<ToolSpec> tools) const = 0;
  // A Lark grammar (llguidance's dialect) of a reply that is one call, or with choice.parallel one or more, of the
  // tools that choice allows, arguments valid by their schemas. special: the markers that are special tokens of the
  // vocabulary, which the grammar writes as token references (<|marker|>) and not as text.
  virtual std::string call_grammar(std::span<const ToolSpec> tools, const ToolChoice& choice,
                                   std::span<const std::string> special) const = 0;
};

std::span<const ToolSyntax* const> tool_syntaxes();
const ToolSyntax* find_tool_syntax(std::string_view name);
// The syntax that a template speaks; Hermes for a template without tools or no template.
const ToolSyntax& detect_tool_syntax(std::string_view template_source);

// A pair of marks around reasoning.
struct ReasoningMarks {
  std::string open, close;
  bool operator==(const ReasoningMarks&) const = default;
};
// The pair that a template uses; nothing where it has none.
std::optional<ReasoningMarks> detect_reasoning(std::string_view template_source);

struct MessageFormat {
  std::optional<ReasoningMarks> reasoning = {};
  const ToolSyntax* tools = nullptr;  // null: no calls are looked for
};

// One per choice; the caller's thread.
class MessageParser {
 public:
  // prompt_tail: the end of the rendered prompt (a few hundred bytes do); where it ends inside an opened reasoning
  // block, the reply starts there.
  MessageParser(const MessageFormat& format, std::vector<ToolSpec> tools, std::string_view prompt_tail);
  MessageParser(MessageParser&&) noexcept;
  MessageParser& operator=(MessageParser&&) noexcept;
  ~MessageParser();

  void push(std::string_view text, std::vector<MessagePart>& out);
  void finish(std::vector<MessagePart>& out);
  bool in_reasoning() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::text
