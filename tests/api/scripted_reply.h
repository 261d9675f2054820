// Scripted decoding: a constraint that forces a given text, token by token, through the real engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sampling/constraint.h"
#include "text/tokenizer.h"

namespace vedette::test {

// Allows the text's next token alone, and ends the sequence after the last.
std::shared_ptr<const sampling::Constraint> force_text(const text::Tokenizer& tokenizer, const std::string& text);

// Replies by script. A script is a JSON list of {"when": TEXT, "reply": TEXT}: a request whose prompt holds `when` gets
// the reply of the first entry that has not been used yet ("always": true entries never wear out).
class Script {
 public:
  static Result<Script> read(const std::string& path);
  // The reply for a prompt, if any.
  const std::string* take(const std::string& prompt);

 private:
  struct Entry {
    std::string when, reply;
    bool always = false, used = false;
  };
  std::vector<Entry> entries_;
};

}  // namespace vedette::test
