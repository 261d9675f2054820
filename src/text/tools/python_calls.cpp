#include "text/tools/python_calls.h"

#include "text/tools/typed_value.h"

namespace vedette::text {
namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool goes_on(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

constexpr std::string_view kCallSuffix = ".call";  // Llama 3 writes f.call(..)

std::string_view without_suffix(std::string_view name) {
  if (name.ends_with(kCallSuffix)) name.remove_suffix(kCallSuffix.size());
  return name;
}

}  // namespace

PythonArguments::Event PythonArguments::step(char c, std::string& out) {
  switch (state_) {
    case State::kStart:
      if (is_blank(c)) return Event::kMore;
      if (c == ')') {
        out += first_ ? "{}" : "}";
        return Event::kDone;
      }
      key_.clear();
      value_.clear();
      mender_ = JsonMender({.tuples = true});
      state_ = starts_name(c) ? State::kName : State::kValue;
      return state_ == State::kName ? name(c, out) : value(c, out);
    case State::kName:
      return name(c, out);
    case State::kValue:
      return value(c, out);
    case State::kAfter:
      if (is_blank(c)) return Event::kMore;
      if (c == ',') {
        state_ = State::kStart;
        return Event::kMore;
      }
      if (c != ')') return Event::kError;
      out += '}';
      return Event::kDone;
  }
  return Event::kError;
}

// A word is a keyword's name before '=', else the start of a value given by position.
PythonArguments::Event PythonArguments::name(char c, std::string& out) {
  if (goes_on(c)) {
    key_ += c;
    return Event::kMore;
  }
  if (is_blank(c)) return Event::kMore;
  state_ = State::kValue;
  if (c == '=') return Event::kMore;
  const std::string word = std::exchange(key_, "");
  for (char letter : word)
    if (value(letter, out) == Event::kError) return Event::kError;
  return value(c, out);
}

std::string PythonArguments::key() const {
  if (!key_.empty()) return key_;
  const Json* properties = tool_->parameters.find("properties");
  const bool known = properties != nullptr && properties->is_object() && position_ < properties->as_object().size();
  return known ? properties->as_object()[position_].first : std::to_string(position_);
}

std::string PythonArguments::start() const {
  return (first_ ? "{" : ", ") + quote_json(key()) + ": ";
}

PythonArguments::Event PythonArguments::value(char c, std::string& out) {
  const JsonMender::Status status = mender_.step(c, value_);
  if (status == JsonMender::Status::kMore) return Event::kMore;
  if (status == JsonMender::Status::kError) return Event::kError;
  value_ended(out);
  return status == JsonMender::Status::kDone ? Event::kMore : step(c, out);
}

void PythonArguments::value_ended(std::string& out) {
  const Json* schema = parameter_schema(tool_->parameters, key());
  out += start() + retyped_json(value_, value_types(schema, &tool_->parameters));
  first_ = false;
  ++position_;
  state_ = State::kAfter;
}

void PythonArguments::flush(std::string& out) {
  if (state_ == State::kName) out += (first_ ? "{" : ", ") + key_;
  if (state_ != State::kValue) return;
  out += start() + value_;
  mender_.flush(out);
}

void PythonCallParser::opened(size_t opener) {
  name_.clear();
  kind_ = Kind::kUnknown;
  if (opener == kNext) {
    kind_ = Kind::kPython;
    name_ = last_byte();
    return;
  }
  JsonCallParser::opened(opener);
  if (in_object()) kind_ = Kind::kJson;
}

void PythonCallParser::head(char c) {
  if (kind_ == Kind::kUnknown) {
    if (c == '{') kind_ = Kind::kJson;
    if (is_blank(c) || (c == '[' && !in_list())) return JsonCallParser::head(c);
    if (kind_ == Kind::kUnknown) kind_ = Kind::kPython;
  }
  if (kind_ == Kind::kJson) return JsonCallParser::head(c);
  if (c != '(') {
    name_ += c;
    const size_t dot = name_.rfind('.');
    const bool called = dot != std::string::npos && kCallSuffix.starts_with(std::string_view(name_).substr(dot)) &&
                        find_tool(std::string_view(name_).substr(0, dot)) != nullptr;
    if (!starts_tool(name_) && !called) give_up();
    return;
  }
  const ToolSpec* tool = find_tool(name_);
  if (tool == nullptr) tool = find_tool(without_suffix(name_));
  if (tool == nullptr) return give_up();
  arguments_ = PythonArguments(tool);
  begin_call(*tool);
}

void PythonCallParser::body(char c) {
  if (kind_ != Kind::kPython) return JsonCallParser::body(c);
  std::string piece;
  const auto event = arguments_.step(c, piece);
  if (event == PythonArguments::Event::kError) arguments_.flush(piece);
  arguments(piece);
  if (event == PythonArguments::Event::kDone) end_call(true);
  if (event == PythonArguments::Event::kError) broken();
}

void PythonCallParser::after(char c) {
  if (kind_ != Kind::kPython) return JsonCallParser::after(c);
  if (is_blank(c) || (in_list() && c == ',')) return;
  if (in_list() && starts_name(c)) return hold_again(kNext);
  to_text(c != ']' || !in_list());
}

bool PythonCallParser::cut() {
  if (kind_ != Kind::kPython) return JsonCallParser::cut();
  std::string piece;
  arguments_.flush(piece);
  arguments(piece);
  return false;
}

}  // namespace vedette::text
