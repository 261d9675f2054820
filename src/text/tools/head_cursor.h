// Reads the short text between an opener and a function's name; asked again for each byte, so kept short.
#pragma once

#include <string_view>

#include "text/tools/json_mender.h"

namespace vedette::text {

class HeadCursor {
 public:
  static constexpr size_t kMaxHead = 320;

  explicit HeadCursor(std::string_view text) : text_(text), failed_(text.size() > kMaxHead) {}

  HeadCursor& literal(std::string_view wanted) {
    if (stopped()) return *this;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with(wanted)) {
      at_ += wanted.size();
    } else if (wanted.starts_with(rest)) {
      more_ = true;
    } else {
      failed_ = true;
    }
    return *this;
  }
  // The same where it stands there; nothing where another text stands.
  HeadCursor& optional(std::string_view wanted) {
    if (stopped()) return *this;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with(wanted)) {
      at_ += wanted.size();
    } else if (wanted.starts_with(rest)) {
      more_ = true;
    }
    return *this;
  }
  HeadCursor& blank() {
    while (!stopped() && at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return *this;
  }
  // Text up to one of the bytes `stops`; `out` gets what there is of it even where the end is not there yet.
  HeadCursor& until(std::string_view stops, std::string_view& out) {
    if (stopped()) return *this;
    const size_t end = text_.find_first_of(stops, at_);
    out = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    if (end == std::string_view::npos) more_ = true;
    at_ += out.size();
    return *this;
  }
  // The next byte, '\0' where there is none yet.
  char peek() {
    if (stopped()) return '\0';
    if (at_ == text_.size()) more_ = true;
    return more_ ? '\0' : text_[at_];
  }

  bool failed() const { return failed_; }
  bool more() const { return more_; }  // all of it fits so far
  bool stopped() const { return failed_ || more_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
  bool failed_;
  bool more_ = false;
};

}  // namespace vedette::text
