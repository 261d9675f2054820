// Prompts: a conversation through the checkpoint's chat template, or text as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace vedette::cli {

struct Prompt {
  std::string text;  // what was encoded
  std::vector<int32_t> ids;
};

Json message(std::string_view role, std::string_view content);

class PromptBuilder {
 public:
  // raw: no template; every conversation is refused. Errors: a template that does not parse.
  static Result<PromptBuilder> create(const weights::Checkpoint& checkpoint, bool raw);

  // The checkpoint brought no template: a generic form is used, and it is likely a base model.
  bool is_fallback() const { return !raw_ && !template_; }
  Result<Prompt> conversation(const Json& messages, const text::Tokenizer& tokenizer) const;
  Result<Prompt> plain(const std::string& text, const text::Tokenizer& tokenizer) const;

 private:
  bool raw_ = false;
  std::optional<text::ChatTemplate> template_;
};

// A prompt must be UTF-8 and not empty; `where` names it in messages.
Status check_prompt_text(std::string_view text, std::string_view where);
// A whole file, or standard input for "-". Errors name the file and the option it was given to.
Result<std::string> read_prompt_file(const std::string& path, std::string_view option = "--prompt-file");

}  // namespace vedette::cli
