#include "text/chat_template.h"

#include "base/error.h"
#include "text/rust_bridge.h"

namespace vedette::text {

struct ChatTemplate::Impl {
  RustTemplate chat_template;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  VtTemplate* raw = nullptr;
  VtBytes error;
  const VtStatus status = vt_template_parse(bytes_of(source), source.size(), &raw, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kCorruptFile, "chat template");
  return ChatTemplate(std::make_unique<Impl>(Impl{RustTemplate(raw)}));
}

namespace {

// The variables as transformers passes them; later ones win.
Json variables_of(const ChatRenderInput& input) {
  Json variables = Json::object();
  variables.set("messages", input.messages);
  variables.set("tools", input.tools);
  variables.set("documents", nullptr);
  variables.set("add_generation_prompt", input.add_generation_prompt);
  if (!input.bos_token.empty()) variables.set("bos_token", input.bos_token);
  if (!input.eos_token.empty()) variables.set("eos_token", input.eos_token);
  for (const Json* more : {&input.special_tokens, &input.extra})
    if (more->is_object())
      for (const auto& [name, value] : more->as_object()) variables.set(name, value);
  return variables;
}

}  // namespace

Result<std::string> ChatTemplate::render(const ChatRenderInput& input) const {
  const std::string variables = variables_of(input).dump();
  VtBytes text, error;
  const VtStatus status = vt_template_render(impl_->chat_template.get(), bytes_of(variables), variables.size(),
                                             input.now.value_or(-1), &text, &error);
  if (status == kVtOk) return take(text);
  Error refused = rust_error(status, error, ErrorKind::kInvalidRequest, "chat template");
  if (status == kVtRaised) refused.message += " (the template refuses these messages: change them or the template)";
  return refused;
}

}  // namespace vedette::text
