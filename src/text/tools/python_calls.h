// Calls written as Python writes them: f(a="v", n=3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tools/json_calls.h"

namespace vedette::text {

// Reads the arguments after "f(": keywords, and positions in the order of the schema's properties.
class PythonArguments {
 public:
  enum class Event : uint8_t { kMore, kDone, kError };
  explicit PythonArguments(const ToolSpec* tool = nullptr) : tool_(tool) {}
  // out gets each argument as JSON when it is complete.
  Event step(char c, std::string& out);
  // The text ends here: writes what there is of an argument.
  void flush(std::string& out);

 private:
  enum class State : uint8_t { kStart, kName, kValue, kAfter };
  Event name(char c, std::string& out);
  Event value(char c, std::string& out);
  std::string key() const;
  std::string start() const;
  void value_ended(std::string& out);

  const ToolSpec* tool_;
  State state_ = State::kStart;
  JsonMender mender_;
  std::string key_, value_;
  size_t position_ = 0;
  bool first_ = true;
};

// After an opener either objects as JsonCallParser has them or a list of Python calls.
class PythonCallParser : public JsonCallParser {
 public:
  using JsonCallParser::JsonCallParser;

 protected:
  void opened(size_t opener) override;
  void head(char c) override;
  void body(char c) override;
  void after(char c) override;
  bool cut() override;

 private:
  enum class Kind : uint8_t { kUnknown, kJson, kPython };
  static constexpr size_t kNext = ~size_t{1};  // an opener: a further call of the list
  Kind kind_ = Kind::kUnknown;
  std::string name_;
  PythonArguments arguments_;
};

}  // namespace vedette::text
