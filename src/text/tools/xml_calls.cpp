#include "text/tools/xml_calls.h"

#include "text/tools/call_grammar.h"
#include "text/tools/head_cursor.h"
#include "text/tools/typed_value.h"

namespace vedette::text {
namespace {

constexpr std::string_view kCdataOpen = "<![CDATA[", kCdataClose = "]]>";

// A regular expression in slashes that matches just the text of a tag.
std::string tag_regex(std::string_view tag) {
  std::string out;
  for (const char c : tag) {
    if (std::string_view("\\/^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string xml_call_body(const XmlForm& form, const ToolSpec& tool, size_t n, std::string& rules) {
  const std::string tag_end = form.attributes ? ">" : "", newline = form.framed_by_newlines ? "\n" : "";
  const auto tag = [&](std::string_view open, const std::string& name, std::string_view end) {
    return std::string(open) + name + std::string(end) + tag_end;
  };
  const auto parameters = parameter_rules(tool, n, rules, [&](const std::string& name) {
    return ParameterForm{.open = lark_text(tag(form.parameter_open, name, form.key_end) + newline),
                         .close = lark_text(newline + std::string(form.value_close) + "\n"),
                         .close_regex = tag_regex(form.value_close),
                         .after_text = lark_text("\n")};
  });
  return lark_text(tag(form.call_open, tool.name, form.name_end) + "\n") + " " + in_sequence(parameters) +
         lark_text(std::string(form.call_close) + "\n");
}

CallMarks XmlCallParser::marks_of(const XmlForm& form) {
  CallMarks marks{
      .openers = form.wrappers, .closers = form.wrapper_closers, .dropped = form.dropped, .first = form.first};
  if (!form.call_open.empty()) marks.openers.push_back(form.call_open);
  marks.openers.insert(marks.openers.end(), form.more_openers.begin(), form.more_openers.end());
  marks.closers.push_back(form.call_close);
  return marks;
}

XmlCallParser::XmlCallParser(std::vector<ToolSpec> tools, XmlForm form)
    : CallParser(std::move(tools), marks_of(form)), form_(std::move(form)) {}

void XmlCallParser::head(char) {
  HeadCursor cursor(head_text());
  std::string_view name, attributes;
  if (opener_ < form_.wrappers.size()) cursor.blank().literal(form_.call_open);
  if (form_.call_open.empty()) cursor.blank();
  cursor.until(form_.name_stops, name);
  const bool partial = cursor.stopped();
  cursor.literal(form_.name_end);
  if (form_.attributes) cursor.until(">", attributes).literal(">");
  if (cursor.failed() || (partial && !starts_tool(name))) return give_up();
  if (!partial && find_tool(name) == nullptr) return give_up();
  if (cursor.more()) return;
  begin_call(*find_tool(name), form_.name_end.empty());
  state_ = State::kBetween;
  first_ = true;
  text_.clear();
}

void XmlCallParser::body(char c) {
  switch (state_) {
    case State::kBetween:
      return between(c);
    case State::kKey:
      key_ += c;
      if (!key_.ends_with(form_.key_end)) return;
      key_.resize(key_.size() - form_.key_end.size());
      text_.clear();
      attributes_.clear();
      if (form_.attributes) {
        state_ = State::kAttributes;
        return;
      }
      return key_ended();
    case State::kAttributes:
      if (c == '>') return key_ended();
      attributes_ += c;
      return;
    case State::kGap:
      if (text_.empty() && is_blank(c)) return;
      text_ += c;
      if (!form_.value_open.starts_with(text_)) return broken_after(text_);
      if (text_.size() == form_.value_open.size()) state_ = State::kValue;
      return;
    case State::kValue:
      value_ += c;
      if (c != form_.value_close.back() || !value_.ends_with(form_.value_close)) return;
      if (form_.cdata && value_.starts_with(kCdataOpen)) {
        const std::string_view inner = trim_blank(bare_value());
        if (!inner.ends_with(kCdataClose)) return;
      }
      return value_ended();
  }
}

// The last byte of `text` is the one being read.
void XmlCallParser::broken_after(std::string_view text) {
  text.remove_suffix(1);
  arguments(text);
  broken();
}

void XmlCallParser::key_ended() {
  value_.clear();
  text_.clear();
  state_ = form_.value_open.empty() ? State::kValue : State::kGap;
}

void XmlCallParser::between(char c) {
  text_ += c;
  if (text_.ends_with(form_.parameter_open)) {
    const size_t before = text_.size() - form_.parameter_open.size();
    if (!trim_blank(std::string_view(text_).substr(0, before)).empty()) return broken_after(text_);
    key_.clear();
    state_ = State::kKey;
    return;
  }
  if (c != '>') return;
  std::string_view closer;
  if (text_.ends_with(form_.call_close)) closer = form_.call_close;
  for (std::string_view wrapper : form_.wrapper_closers)
    if (text_.ends_with(wrapper) && wrapper.size() > closer.size()) closer = wrapper;
  if (closer.empty()) return;
  text_.resize(text_.size() - closer.size());
  close_call();
}

// Text between the tags is no part of the syntax. Some models write all arguments there as one JSON object.
void XmlCallParser::close_call() {
  const std::string_view rest = trim_blank(text_);
  std::string json;
  if (rest.empty()) {
    arguments(first_ ? "{}" : "}");
  } else if (first_ && rest[0] == '{' && mend_json(rest, json)) {
    arguments(json);
  } else {
    arguments(rest);
  }
  end_call(true);
}

std::string XmlCallParser::parameter_start() const {
  return (first_ ? "{" : ", ") + quote_json(trim_blank(key_)) + ": ";
}

std::string_view XmlCallParser::bare_value() const {
  std::string_view value = value_;
  if (value.ends_with(form_.value_close)) value.remove_suffix(form_.value_close.size());
  return value;
}

void XmlCallParser::value_ended() {
  std::string_view value = bare_value();
  bool text_only = false;
  if (form_.cdata && value.starts_with(kCdataOpen)) {
    value = trim_blank(value);
    value = value.substr(kCdataOpen.size(), value.size() - kCdataOpen.size() - kCdataClose.size());
    text_only = true;
  }
  if (form_.framed_by_newlines) {
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
  }
  const Json& parameters = tool()->parameters;
  ValueTypes types = value_types(parameter_schema(parameters, trim_blank(key_)), &parameters);
  bool any_json = form_.any_json;
  if (form_.string_attribute) {
    text_only = text_only || attributes_.find("\"true\"") != std::string::npos;
    any_json = attributes_.find("\"false\"") != std::string::npos;
    if (any_json) types = {};
  }
  if (text_only && !types.known) types.known = types.string = true;
  arguments(parameter_start() + typed_json(value, types, any_json));
  first_ = false;
  text_.clear();
  state_ = State::kBetween;
}

bool XmlCallParser::cut() {
  if (state_ != State::kValue) {
    if (!trim_blank(text_).empty() && state_ == State::kBetween) arguments(trim_blank(text_));
    return false;
  }
  std::string piece = parameter_start() + '"';
  escape_json(value_, piece);
  arguments(piece);
  return false;
}

}  // namespace vedette::text
