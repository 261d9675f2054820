#include "text/tools/json_mender.h"

#include "base/json.h"

namespace vedette::text {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '+' ||
         c == '.' || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_closer(char c) {
  return c == '}' || c == ']' || c == ')';
}

void escape_char(char c, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

// A literal or number in JSON's spelling; empty where the word is neither.
std::string literal(std::string_view word) {
  if (word == "true" || word == "True") return "true";
  if (word == "false" || word == "False") return "false";
  if (word == "null" || word == "None") return "null";
  if (is_json_number(word)) return std::string(word);
  std::string number(word);
  if (!number.empty() && number[0] == '+') number.erase(0, 1);
  const size_t sign = !number.empty() && number[0] == '-' ? 1 : 0;
  if (number.size() > sign + 1 && number[sign] == '.') number.insert(sign, "0");
  if (number.size() > sign && number.back() == '.') number += '0';
  return is_json_number(number) ? number : std::string();
}

}  // namespace

bool is_json_number(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - start;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const bool zero = at < text.size() && text[at] == '0';
  const size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::string_view trim_blank(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

void escape_json(std::string_view text, std::string& out) {
  for (char c : text) escape_char(c, out);
}

std::string quote_json(std::string_view text) {
  std::string out = "\"";
  escape_json(text, out);
  return out += '"';
}

bool unquote_json(std::string_view json, std::string& out) {
  auto parsed = parse_json(json, "string");
  if (!parsed.ok() || !parsed.value().is_string()) return false;
  out = parsed.value().as_string();
  return true;
}

bool mend_json(std::string_view text, std::string& out, JsonForm form) {
  JsonMender mender(form);
  text = trim_blank(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto status = mender.step(text[i], out);
    if (status == JsonMender::Status::kDone) return i + 1 == text.size();
    if (status != JsonMender::Status::kMore) return false;
  }
  return mender.finish(out);
}

JsonMender::Status JsonMender::step(char c, std::string& out) {
  switch (state_) {
    case State::kValue:
    case State::kFirstItem:
    case State::kNextItem:
      return value(c, out);
    case State::kFirstKey:
    case State::kNextKey:
      return key(c, out);
    case State::kColon:
      if (is_blank(c)) {
        blank(c, out);
        return Status::kMore;
      }
      if (c != ':') return Status::kError;
      out += c;
      state_ = State::kValue;
      return Status::kMore;
    case State::kAfter:
      return after(c, out);
    case State::kString:
      return string(c, out);
    case State::kEscape:
      return escape(c, out);
    case State::kHex:
      return hex(c, out);
    case State::kMark:
      if (c != form_.quote[matched_]) return Status::kError;
      if (++matched_ < form_.quote.size()) return Status::kMore;
      matched_ = 0;
      write_pending(out);
      out += '"';
      state_ = State::kRaw;
      return Status::kMore;
    case State::kRaw:
      return raw(c, out);
    case State::kWord:
      return word(c, out);
  }
  return Status::kError;
}

// Blank space inside a container is kept as it is written, around the whole value it is dropped.
void JsonMender::blank(char c, std::string& out) {
  if (!stack_.empty()) (pending_.empty() ? out : pending_) += c;
}

void JsonMender::write_pending(std::string& out) {
  out += pending_;
  pending_.clear();
}

bool JsonMender::start_string(char c, std::string& out) {
  if (c == '"' || c == '\'') {
    write_pending(out);
    out += '"';
    quote_ = c;
    state_ = State::kString;
    return true;
  }
  if (!form_.quote.empty() && c == form_.quote[0]) {
    matched_ = 1;
    state_ = State::kMark;
    return true;
  }
  return false;
}

JsonMender::Status JsonMender::value(char c, std::string& out) {
  if (is_blank(c)) {
    blank(c, out);
    return Status::kMore;
  }
  if (is_closer(c)) return state_ == State::kValue ? Status::kError : close(c, out);
  is_key_ = false;
  if (start_string(c, out)) return Status::kMore;
  if (c == '{' || c == '[' || (c == '(' && form_.tuples)) return open(c, out);
  if (!is_word_char(c) && !(form_.bare_values && c != ',' && c != ':')) return Status::kError;
  word_ = c;
  state_ = State::kWord;
  return Status::kMore;
}

JsonMender::Status JsonMender::key(char c, std::string& out) {
  if (is_blank(c)) {
    blank(c, out);
    return Status::kMore;
  }
  if (is_closer(c)) return close(c, out);
  is_key_ = true;
  if (start_string(c, out)) return Status::kMore;
  if (!is_word_char(c)) return Status::kError;
  word_ = c;
  state_ = State::kWord;
  return Status::kMore;
}

JsonMender::Status JsonMender::open(char c, std::string& out) {
  if (stack_.size() >= kMaxDepth) return Status::kError;
  write_pending(out);
  stack_ += c;
  out += c == '(' ? '[' : c;
  state_ = c == '{' ? State::kFirstKey : State::kFirstItem;
  return Status::kMore;
}

JsonMender::Status JsonMender::close(char c, std::string& out) {
  if (stack_.empty()) return Status::kError;
  const char opened = stack_.back();
  if (c != (opened == '{' ? '}' : opened == '[' ? ']' : ')')) return Status::kError;
  pending_.clear();
  stack_.pop_back();
  out += c == ')' ? ']' : c;
  return value_ended();
}

JsonMender::Status JsonMender::value_ended() {
  state_ = State::kAfter;
  return stack_.empty() ? Status::kDone : Status::kMore;
}

JsonMender::Status JsonMender::string_ended(std::string& out) {
  out += '"';
  if (!is_key_) return value_ended();
  state_ = State::kColon;
  return Status::kMore;
}

JsonMender::Status JsonMender::after(char c, std::string& out) {
  if (is_blank(c)) {
    blank(c, out);
    return Status::kMore;
  }
  if (c == ',') {
    pending_ = c;
    state_ = stack_.back() == '{' ? State::kNextKey : State::kNextItem;
    return Status::kMore;
  }
  return close(c, out);
}

void JsonMender::settle_surrogate(std::string& out) {
  if (high_surrogate_.empty()) return;
  out += "\\ufffd";
  high_surrogate_.clear();
}

JsonMender::Status JsonMender::string(char c, std::string& out) {
  if (c == '\\') {
    state_ = State::kEscape;
    return Status::kMore;
  }
  settle_surrogate(out);
  if (c != quote_) {
    escape_char(c, out);
    return Status::kMore;
  }
  return string_ended(out);
}

JsonMender::Status JsonMender::escape(char c, std::string& out) {
  if (c == 'u' || c == 'x') {
    hex_digits_ = c == 'u' ? 4 : 2;
    word_.clear();
    state_ = State::kHex;
    return Status::kMore;
  }
  settle_surrogate(out);
  state_ = State::kString;
  if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
    out += '\\';
    out += c;
  } else {
    if (c != '\'') out += "\\\\";
    escape_char(c, out);
  }
  return Status::kMore;
}

JsonMender::Status JsonMender::hex(char c, std::string& out) {
  if (!is_hex(c)) {
    settle_surrogate(out);
    out += hex_digits_ == 4 ? "\\\\u" : "\\\\x";
    out += word_;
    state_ = State::kString;
    return string(c, out);
  }
  word_ += c;
  if (word_.size() < hex_digits_) return Status::kMore;
  state_ = State::kString;
  const bool surrogate = word_.size() == 4 && (word_[0] == 'd' || word_[0] == 'D') && word_[1] >= '8' &&
                         std::string_view("89abAB").find(word_[1]) != std::string_view::npos;
  const bool low = word_.size() == 4 && (word_[0] == 'd' || word_[0] == 'D') &&
                   std::string_view("cdefCDEF").find(word_[1]) != std::string_view::npos;
  if (surrogate) {
    settle_surrogate(out);
    high_surrogate_ = "\\u" + word_;
  } else if (low) {
    out += high_surrogate_.empty() ? "\\ufffd" : high_surrogate_ + "\\u" + word_;
    high_surrogate_.clear();
  } else {
    settle_surrogate(out);
    out += (word_.size() == 2 ? "\\u00" : "\\u") + word_;
  }
  return Status::kMore;
}

// The mark's first byte does not recur in it, so a failed match can only begin anew at the failing byte.
JsonMender::Status JsonMender::raw(char c, std::string& out) {
  if (c == form_.quote[matched_]) {
    if (++matched_ < form_.quote.size()) return Status::kMore;
    matched_ = 0;
    return string_ended(out);
  }
  escape_json(form_.quote.substr(0, matched_), out);
  matched_ = c == form_.quote[0] ? 1 : 0;
  if (matched_ == 0) escape_char(c, out);
  return Status::kMore;
}

JsonMender::Status JsonMender::word(char c, std::string& out) {
  const bool bare = form_.bare_values && !is_key_;
  const bool goes_on = bare ? c != ',' && !is_closer(c) && c != '\n' : is_word_char(c);
  if (goes_on) {
    word_ += c;
    return Status::kMore;
  }
  if (is_key_) {
    write_pending(out);
    out += quote_json(word_);
    state_ = State::kColon;
    return step(c, out);
  }
  const bool outermost = stack_.empty();
  if (!write_word(out)) return Status::kError;
  state_ = State::kAfter;
  return outermost ? Status::kDoneBefore : after(c, out);
}

bool JsonMender::write_word(std::string& out) {
  const std::string_view trimmed = trim_blank(word_);
  std::string json = literal(trimmed);
  if (json.empty()) {
    if (!form_.bare_values) return false;
    json = quote_json(trimmed);
  }
  write_pending(out);
  out += json;
  word_.clear();
  return true;
}

bool JsonMender::finish(std::string& out) {
  return state_ == State::kWord && stack_.empty() && write_word(out);
}

void JsonMender::flush(std::string& out) {
  write_pending(out);
  out += high_surrogate_;
  high_surrogate_.clear();
  switch (state_) {
    case State::kEscape:
      out += '\\';
      break;
    case State::kHex:
      out += (hex_digits_ == 4 ? "\\u" : "\\x") + word_;
      break;
    case State::kMark:
    case State::kRaw:
      out += form_.quote.substr(0, matched_);
      break;
    case State::kWord:
      out += word_;
      break;
    default:
      break;
  }
}

}  // namespace vedette::text
