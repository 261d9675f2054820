// Chat templates (Jinja) rendered as transformers' apply_chat_template does. Backed by `minijinja`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace vedette::text {

struct ChatRenderInput {
  Json messages;  // array of {role, content, ...}
  Json tools;     // null or array
  bool add_generation_prompt = true;
  Json extra;                        // null or object: further variables (enable_thinking, ...)
  std::string bos_token, eos_token;  // texts
  Json special_tokens;               // null or object: further special tokens by name (unk_token, ...)
  std::optional<int64_t> now;        // seconds since 1970 for strftime_now; the clock's if absent
};

// Immutable after creation; any thread.
class ChatTemplate {
 public:
  // Errors: kCorruptFile for a text that is not UTF-8, for a syntax error with its line and column, and for a template
  // beyond the limits on size and shape.
  static Result<ChatTemplate> parse(std::string_view source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Errors: kInvalidRequest with the template's own raise_exception text, or the failing line.
  Result<std::string> render(const ChatRenderInput& input) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::text
