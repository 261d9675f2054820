#include "text/tools/json_calls.h"

namespace vedette::text {

using Status = JsonMender::Status;

bool CallObject::key_ended() {
  std::string key;
  if (!unquote_json(text_, key)) return false;
  role_ = Role::kOther;
  if ((key == "name" || key == "tool_name") && !named_) {
    role_ = Role::kName;
  } else if ((key == "arguments" || key == "parameters" || key == "args") && !arguments_begun_) {
    role_ = Role::kArguments;
  } else if (key != "id" && key != "type" && key != "function" && key != "tool_call_id") {
    foreign_key_ = true;
  }
  return true;
}

CallObject::Event CallObject::step(char c, std::string& arguments) {
  if (state_ == State::kValue) return value(c, arguments);
  if (state_ == State::kKey) {
    const Status status = mender_.step(c, text_);
    if (status == Status::kMore) return Event::kMore;
    if (status != Status::kDone || !key_ended()) return Event::kError;
    state_ = State::kColon;
    return Event::kMore;
  }
  if (is_blank(c)) return Event::kMore;
  switch (state_) {
    case State::kOpen:
      if (c != '{') return Event::kError;
      state_ = State::kFirstKey;
      return Event::kMore;
    case State::kFirstKey:
      if (c == '}') return named_ ? Event::kDone : Event::kError;
      if (c != '"' && c != '\'') return Event::kError;
      text_.clear();
      mender_ = JsonMender();
      mender_.step(c, text_);
      state_ = State::kKey;
      return Event::kMore;
    case State::kColon:
      if (c != ':') return Event::kError;
      state_ = State::kStart;
      return Event::kMore;
    case State::kStart:
      text_.clear();
      mender_ = JsonMender();
      state_ = State::kValue;
      // Only an object can be given out as it comes: a string is unwrapped, null stands for no arguments.
      if (role_ == Role::kArguments) {
        arguments_begun_ = true;
        if (c != '{') role_ = Role::kQuotedArguments;
      }
      return value(c, arguments);
    case State::kNext:
      if (c == ',') {
        state_ = State::kFirstKey;
        return Event::kMore;
      }
      return c == '}' && named_ ? Event::kDone : Event::kError;
    default:
      return Event::kError;
  }
}

CallObject::Event CallObject::value(char c, std::string& arguments) {
  const Status status = mender_.step(c, role_ == Role::kArguments ? arguments : text_);
  if (role_ == Role::kOther) text_.clear();
  if (status == Status::kMore) return Event::kMore;
  if (status == Status::kError) return Event::kError;
  const Event event = value_ended(arguments);
  if (status == Status::kDone || event == Event::kError) return event;
  return step(c, arguments);  // a word ended before c; a name is no word, so no event is lost
}

CallObject::Event CallObject::value_ended(std::string& arguments) {
  state_ = State::kNext;
  if (role_ == Role::kName) {
    if (!unquote_json(text_, name_)) return Event::kError;
    named_ = true;
    return Event::kNamed;
  }
  if (role_ == Role::kQuotedArguments) {
    std::string inner, mended;
    if (text_ == "null") {
      arguments += "{}";
    } else if (!unquote_json(text_, inner)) {
      arguments += text_;
    } else {
      arguments += mend_json(inner, mended) ? mended : inner;
    }
  }
  if (role_ == Role::kArguments || role_ == Role::kQuotedArguments) arguments_done_ = true;
  return Event::kMore;
}

void CallObject::flush(std::string& arguments) {
  if (state_ != State::kValue || arguments_done_) return;
  if (role_ == Role::kArguments) mender_.flush(arguments);
  if (role_ == Role::kQuotedArguments) {
    std::string inner;
    mender_.flush(text_);
    arguments += unquote_json(text_ + '"', inner) ? inner : text_;
  }
}

JsonCallParser::JsonCallParser(std::vector<ToolSpec> tools, JsonCallsForm form)
    : CallParser(std::move(tools), form.marks), form_(std::move(form)) {}

void JsonCallParser::opened(size_t opener) {
  const CallMarks& marks = form_.marks;
  const bool first = opener != kBrace && opener >= marks.openers.size();
  const std::string_view mark = first ? marks.first[opener - marks.openers.size()] : std::string_view();
  if (opener != kBrace) {
    strict_ = mark == "{" || mark == "[";
    in_list_ = mark == "[";
  }
  plain_ = false;
  early_.clear();
  object_ = CallObject();
  object_open_ = opener == kBrace || mark == "{";
  std::string none;
  if (object_open_) object_.step('{', none);
}

void JsonCallParser::head(char c) {
  if (!object_open_) {
    if (is_blank(c)) return;
    if (c == '[' && !in_list_) {
      in_list_ = true;
      return;
    }
    if (c != '{') return give_up();
    object_open_ = true;
  }
  const CallObject::Event event = object_.step(c, early_);
  if (event == CallObject::Event::kMore) {
    if (strict_ && object_.foreign_key()) give_up();
    return;
  }
  const ToolSpec* tool = event == CallObject::Event::kNamed ? find_tool(object_.name()) : nullptr;
  if (tool == nullptr) return give_up();
  begin_call(*tool);
  arguments(early_);
}

void JsonCallParser::begin_plain(const ToolSpec& tool, bool again, JsonForm json) {
  plain_ = true;
  mender_ = JsonMender(json);
  begin_call(tool, again);
}

void JsonCallParser::body(char c) {
  std::string piece;
  if (!plain_) return object_body(c);
  const Status status = mender_.step(c, piece);
  if (status == Status::kError) mender_.flush(piece);
  arguments(piece);
  if (status == Status::kDone) end_call(true);
  if (status == Status::kError || status == Status::kDoneBefore) broken();
}

void JsonCallParser::object_body(char c) {
  std::string piece;
  const CallObject::Event event = object_.step(c, piece);
  if (event == CallObject::Event::kError && !object_.arguments_done()) object_.flush(piece);
  arguments(piece);
  if (event == CallObject::Event::kDone) end_call(true);
  if (event != CallObject::Event::kError) return;
  if (!object_.arguments_done()) return broken();
  end_call(true);  // the arguments are whole, only the object around them is not
  after(c);
}

// Within the frame further calls may follow; brackets too many belong to the markup.
void JsonCallParser::after(char c) {
  if (is_blank(c) || form_.between.find(c) != std::string_view::npos) return;
  if (plain_) return to_text(true);
  if (c == '}' || c == ']' || (c == ',' && in_list_)) return;
  if (c == '{') return hold_again(kBrace);
  to_text(true);
}

bool JsonCallParser::cut() {
  std::string piece;
  bool complete = false;
  if (plain_) {
    complete = mender_.finish(piece);
    mender_.flush(piece);
  } else {
    object_.flush(piece);
    complete = object_.arguments_done();
  }
  arguments(piece);
  return complete;
}

}  // namespace vedette::text
