// JSON as models write it, turned into strict JSON byte by byte: Python's literals and quotes, trailing commas, bare
// keys, raw control characters and unknown escapes are mended. What is written is a prefix of the final text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vedette::text {

struct JsonForm {
  std::string_view quote = {};  // a mark that opens and closes strings without escapes (Gemma's <|"|>)
  bool bare_values = false;     // a word that is no literal is a string
  bool tuples = false;          // (1, 2) is an array
};

class JsonMender {
 public:
  static constexpr int kMaxDepth = 60;  // below what parse_json allows

  enum class Status : uint8_t {
    kMore,
    kDone,        // the value ended with this byte
    kDoneBefore,  // the value (a word) ended before this byte, which is not taken
    kError,       // this byte cannot follow and is not taken
  };

  explicit JsonMender(JsonForm form = {}) : form_(form) {}
  Status step(char c, std::string& out);
  // The text has ended: whether that completes the value (a word).
  bool finish(std::string& out);
  // Writes what was read and held back, as the model wrote it; for a value that will not be completed.
  void flush(std::string& out);

 private:
  enum class State : uint8_t {
    kValue,
    kFirstItem,
    kNextItem,
    kFirstKey,
    kNextKey,
    kColon,
    kAfter,
    kString,
    kEscape,
    kHex,
    kMark,
    kRaw,
    kWord,
  };

  Status value(char c, std::string& out);
  Status key(char c, std::string& out);
  Status after(char c, std::string& out);
  Status string(char c, std::string& out);
  Status escape(char c, std::string& out);
  Status hex(char c, std::string& out);
  Status raw(char c, std::string& out);
  Status word(char c, std::string& out);
  Status open(char c, std::string& out);
  Status close(char c, std::string& out);
  Status value_ended();
  Status string_ended(std::string& out);
  bool start_string(char c, std::string& out);
  bool write_word(std::string& out);
  void write_pending(std::string& out);
  void settle_surrogate(std::string& out);
  void blank(char c, std::string& out);

  JsonForm form_;
  State state_ = State::kValue;
  bool is_key_ = false;
  char quote_ = '"';
  size_t matched_ = 0;          // bytes of form_.quote
  size_t hex_digits_ = 0;       // wanted
  std::string stack_;           // open brackets
  std::string pending_;         // a comma and the blank space after it, dropped before a closing bracket
  std::string word_;            // a literal, number, bare word or hex digits so far
  std::string high_surrogate_;  // \uD8xx waiting for its second half
};

// A JSON string, quotes included.
std::string quote_json(std::string_view text);
// The same without the quotes, appended.
void escape_json(std::string_view text, std::string& out);
// The text of a mended JSON string; false for another value.
bool unquote_json(std::string_view json, std::string& out);
// A whole text mended to one JSON value; false where it is none.
bool mend_json(std::string_view text, std::string& out, JsonForm form = {});
bool is_json_number(std::string_view text);
inline bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
std::string_view trim_blank(std::string_view text);

}  // namespace vedette::text
