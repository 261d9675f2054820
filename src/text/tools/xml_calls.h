// Calls written as tags, one for each parameter, with values as plain text: typed by the request's schema and given
// out as each parameter is complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tools/call_parser.h"

namespace vedette::text {

struct XmlForm {
  std::vector<std::string_view> wrappers = {};  // tags around calls, optional unless call_open is empty
  std::vector<std::string_view> wrapper_closers = {};
  std::string_view call_open = {};  // before the name; empty: the name follows the wrapper
  std::string_view name_stops = {};
  std::string_view name_end = {};  // after the name; empty: the name ends before a byte of name_stops
  std::string_view call_close = {};
  std::string_view parameter_open = {};
  std::string_view key_end = {};
  bool attributes = false;           // name_end and key_end are followed by attributes up to '>'
  bool string_attribute = false;     // string="true" or "false" says whether a value is a string or JSON
  std::string_view value_open = {};  // after key_end and blank space, where there is such a tag
  std::string_view value_close = {};
  bool framed_by_newlines = false;  // one newline after the opening and before the closing tag is no part of the value
  bool cdata = false;               // a value may stand in <![CDATA[..]]>
  bool any_json = false;            // a value without schema may be any JSON
  // Channels around the tags (CallMarks::first and further openers), see AtemParser.
  std::vector<std::string_view> more_openers = {};
  std::vector<std::string_view> first = {};
  std::vector<std::string_view> dropped = {};
};

// The grammar of one call in a form whose tags stand on lines of their own, without its wrapper: the body of rule
// call_N of call_rules (call_grammar.h).
std::string xml_call_body(const XmlForm& form, const ToolSpec& tool, size_t n, std::string& rules);

class XmlCallParser : public CallParser {
 public:
  XmlCallParser(std::vector<ToolSpec> tools, XmlForm form);

 protected:
  void opened(size_t opener) override { opener_ = opener; }
  void head(char c) override;
  void body(char c) override;
  bool cut() override;

  size_t opener() const { return opener_; }
  size_t call_openers() const { return form_.wrappers.size() + (form_.call_open.empty() ? 0 : 1); }

 private:
  enum class State : uint8_t { kBetween, kKey, kAttributes, kGap, kValue };

  static CallMarks marks_of(const XmlForm& form);
  void between(char c);
  void key_ended();
  void value_ended();
  void close_call();
  void broken_after(std::string_view text);
  std::string parameter_start() const;
  std::string_view bare_value() const;

  XmlForm form_;
  size_t opener_ = 0;
  State state_ = State::kBetween;
  bool first_ = true;
  std::string text_;  // kBetween: what stands between the tags; kAttributes, kGap: so far
  std::string attributes_;
  std::string key_, value_;
};

}  // namespace vedette::text
