// Calls whose arguments are JSON: objects {"name": .., "arguments": ..} after an opener, singly or in a list, and
// arguments that follow a name written otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tools/call_parser.h"
#include "text/tools/json_mender.h"

namespace vedette::text {

// Reads {"name": .., "arguments": ..}, members in any order; "parameters" counts as arguments, other members are
// skipped. Arguments given as a JSON string are unwrapped.
class CallObject {
 public:
  enum class Event : uint8_t { kMore, kNamed, kDone, kError };
  // kNamed: name() is complete; arguments read before it are in `arguments`, as later pieces will be.
  Event step(char c, std::string& arguments);
  const std::string& name() const { return name_; }
  bool arguments_done() const { return arguments_done_; }
  // A key that calls do not have has been read.
  bool foreign_key() const { return foreign_key_; }
  // The text ends here: writes what was held back of the arguments.
  void flush(std::string& arguments);

 private:
  enum class State : uint8_t { kOpen, kFirstKey, kKey, kColon, kStart, kValue, kNext };
  enum class Role : uint8_t { kName, kArguments, kQuotedArguments, kOther };
  Event value(char c, std::string& arguments);
  Event value_ended(std::string& arguments);
  bool key_ended();

  State state_ = State::kOpen;
  Role role_ = Role::kOther;
  JsonMender mender_;
  std::string text_;  // a key, or a value that is not given out as it comes
  std::string name_;
  bool named_ = false;
  bool arguments_begun_ = false;
  bool arguments_done_ = false;
  bool foreign_key_ = false;
};

struct JsonCallsForm {
  CallMarks marks;
  std::string_view between = "";  // what may stand between calls outside of a list, besides blank space
};

// Frame: opener, then an object or a list of objects. Where the bracket itself is the opener (CallMarks::first), an
// object with a key that calls do not have is no call.
class JsonCallParser : public CallParser {
 public:
  JsonCallParser(std::vector<ToolSpec> tools, JsonCallsForm form);

 protected:
  void opened(size_t opener) override;
  void head(char c) override;
  void body(char c) override;
  void after(char c) override;
  bool cut() override;

  // The arguments follow as one JSON value, beginning with this byte or after it.
  void begin_plain(const ToolSpec& tool, bool again, JsonForm json = {});
  bool in_plain() const { return plain_; }
  bool in_list() const { return in_list_; }
  bool in_object() const { return object_open_; }

 private:
  static constexpr size_t kBrace = ~size_t{0};  // an opener: a brace within a frame
  void object_body(char c);

  JsonCallsForm form_;
  CallObject object_;
  JsonMender mender_;
  bool plain_ = false;
  bool object_open_ = false;
  bool in_list_ = false;
  bool strict_ = false;
  std::string early_;  // arguments that come before the name
};

}  // namespace vedette::text
