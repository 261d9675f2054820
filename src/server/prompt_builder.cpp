#include "server/prompt_builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "server/tool_fallback.h"
#include "text/chat_fallback.h"
#include "text/chat_prompt.h"

namespace vedette::server {
namespace {

constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";
constexpr std::string_view kTokenCount[] = {"<total_tokens>", "</total_tokens>"};

std::string token_text(const text::Tokenizer& tokenizer, const std::optional<int32_t>& id) {
  return std::string(id ? tokenizer.token_bytes(*id, true) : "");
}

std::string string_member(const Json& message, std::string_view key) {
  const Json* value = message.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

// Neighbouring turns of one role become one; turns that carry calls or answers of tools stay as they are.
Json merge_turns(const Json& messages) {
  Json out = Json::array();
  for (const Json& message : messages.as_array()) {
    const std::string role = string_member(message, "role");
    if (!out.as_array().empty() && role != "tool" && message.find("tool_calls") == nullptr) {
      Json& last = out.as_array().back();
      if (string_member(last, "role") == role && last.find("tool_calls") == nullptr) {
        last.set("content", string_member(last, "content") + "\n\n" + string_member(message, "content"));
        continue;
      }
    }
    out.push_back(message);
  }
  return out;
}

// The texts of system turns go before the first user turn.
Json fold_system(const Json& messages) {
  std::string system;
  Json out = Json::array();
  for (const Json& message : messages.as_array()) {
    if (string_member(message, "role") == "system")
      system += (system.empty() ? "" : "\n\n") + string_member(message, "content");
    else
      out.push_back(message);
  }
  if (system.empty()) return out;
  for (Json& message : out.as_array()) {
    if (string_member(message, "role") != "user") continue;
    message.set("content", system + "\n\n" + string_member(message, "content"));
    return out;
  }
  Json first = Json::object();
  first.set("role", "user");
  first.set("content", system);
  out.as_array().insert(out.as_array().begin(), std::move(first));
  return out;
}

void add_system_text(Json& messages, const std::string& text) {
  for (Json& message : messages.as_array()) {
    if (string_member(message, "role") != "system") continue;
    message.set("content", string_member(message, "content") + "\n\n" + text);
    return;
  }
  Json system = Json::object();
  system.set("role", "system");
  system.set("content", text);
  messages.as_array().insert(messages.as_array().begin(), std::move(system));
}

class ConversationRenderer {
 public:
  ConversationRenderer(const ServedModel& model, const Conversation& conversation, const GenerateJob& job)
      : model_(model),
        defaults_(model.defaults.load()),
        conversation_(conversation),
        job_(job),
        messages_(conversation.messages) {}

  Result<BuiltPrompt> build() {
    VEDETTE_RETURN_IF_ERROR(check_not_empty());
    normalise_volatile();
    if (job_.tool_choice.kind != text::ToolChoiceKind::kNone) tools_ = job_.tools;
    const bool has_template = model_.chat_template.has_value();
    if (!has_template || !model_.template_knows_tools) use_tool_fallback();
    std::string tail;
    if (conversation_.continue_last && !messages_.as_array().empty()) {
      tail = string_member(messages_.as_array().back(), "content");
      messages_.as_array().pop_back();
    }
    VEDETTE_ASSIGN_OR_RETURN(out_.text, render_tolerantly(true));
    close_reasoning(!tail.empty());
    const size_t opened = out_.text.size();
    out_.text += tail;
    if (!has_template) out_.stop.emplace_back(text::kChatFallbackStop);
    VEDETTE_ASSIGN_OR_RETURN(out_.ids, text::encode_chat(model_.tokenizer(), out_.text));
    if (model_.has_sliding_layers) VEDETTE_RETURN_IF_ERROR(find_history(opened));
    return std::move(out_);
  }

 private:
  Status check_not_empty() const {
    for (const Json& message : messages_.as_array()) {
      if (!string_member(message, "content").empty() || message.find("tool_calls") != nullptr ||
          !string_member(message, "reasoning_content").empty())
        return ok_status();
    }
    return invalid_request("messages",
                           "messages: expected at least one message with text, found none; add a user turn");
  }

  void normalise_volatile() {
    bool dropped = false;
    for (Json& message : messages_.as_array()) {
      const Json* content = message.find("content");
      if (string_member(message, "role") != "system" || content == nullptr || !content->is_string()) continue;
      std::string text = content->as_string();
      if (!drop_volatile_lines(text)) continue;
      message.set("content", std::move(text));
      dropped = true;
    }
    if (dropped) out_.notes.emplace_back("lines that change from request to request were left out of the prompt");
  }

  void use_tool_fallback() {
    messages_ = without_tool_turns(messages_);
    if (tools_.empty()) return;
    add_system_text(messages_, describe_tools(tools_));
    tools_.clear();
    out_.notes.emplace_back("the chat template knows no tools; they are described in the system text");
  }

  Result<std::string> render(const Json& messages, bool open_reply) const {
    const text::Tokenizer& tokenizer = model_.tokenizer();
    if (!model_.chat_template)
      return text::render_chat_fallback(messages, Json(), open_reply, token_text(tokenizer, tokenizer.bos()));
    text::ChatRenderInput input;
    input.messages = messages;
    if (!tools_.empty()) input.tools = tools_json(tools_);
    input.add_generation_prompt = open_reply;
    input.extra = variables();
    input.bos_token = token_text(tokenizer, tokenizer.bos());
    input.eos_token = token_text(tokenizer, tokenizer.eos());
    input.special_tokens = model_.special_tokens;
    return model_.chat_template->render(input);
  }

  bool thinking_off() const {
    if (conversation_.thinking == Thinking::kOff) return true;
    if (conversation_.thinking == Thinking::kOn) return false;
    return defaults_->thinking.has_value() && !*defaults_->thinking;
  }

  Json variables() const {
    Json out = defaults_->template_kwargs.is_object() ? defaults_->template_kwargs : Json::object();
    if (defaults_->thinking) out.set("enable_thinking", *defaults_->thinking);
    const std::string& effort = conversation_.effort.empty() ? defaults_->effort : conversation_.effort;
    if (!effort.empty() && model_.template_knows_effort) out.set("reasoning_effort", effort);
    if (conversation_.thinking != Thinking::kDefault)
      out.set("enable_thinking", conversation_.thinking == Thinking::kOn);
    if (conversation_.template_kwargs.is_object())
      for (const auto& [key, value] : conversation_.template_kwargs.as_object()) out.set(key, value);
    return out;
  }

  // The conversation as it is; else with turns merged; else with the system text in the first user turn too. The first
  // error is reported if nothing helps.
  Result<std::string> render_tolerantly(bool open_reply) {
    auto first = render(messages_, open_reply);
    if (first.ok()) return first;
    const Json merged = merge_turns(messages_);
    if (auto second = render(merged, open_reply); second.ok()) {
      messages_ = merged;
      out_.notes.emplace_back("neighbouring turns of one role were merged, as the chat template asks");
      return second;
    }
    const Json folded = merge_turns(fold_system(messages_));
    if (auto third = render(folded, open_reply); third.ok()) {
      messages_ = folded;
      out_.notes.emplace_back("the system text was put before the first user turn, as the chat template asks");
      return third;
    }
    Error error = std::move(first).error();
    if (error.field.empty()) error.field = "messages";
    return error;
  }

  // Where reasoning is off and the template opens it all the same, or a given beginning of the answer follows, it is
  // closed at once.
  void close_reasoning(bool answer_follows) {
    if (!model_.message_format.reasoning || !(thinking_off() || answer_follows)) return;
    const text::ReasoningMarks& marks = *model_.message_format.reasoning;
    const size_t open = out_.text.rfind(marks.open);
    if (open == std::string::npos || out_.text.find(marks.close, open) != std::string::npos) return;
    if (out_.text.find_first_not_of(" \t\r\n", open + marks.open.size()) != std::string::npos) return;
    if (!out_.text.ends_with('\n')) out_.text += "\n";
    out_.text += "\n" + marks.close + "\n\n";
  }

  // Tokens of the part that the next turn repeats: all but the mark that opens the reply.
  Status find_history(size_t opened) {
    auto history = render(messages_, false);
    if (!history.ok()) return ok_status();  // some templates insist on opening
    const size_t common = static_cast<size_t>(
        std::mismatch(history->begin(), history->end(), out_.text.begin(), out_.text.end()).first - history->begin());
    if (common > opened) return ok_status();
    VEDETTE_ASSIGN_OR_RETURN(std::vector<int32_t> rest,
                             text::encode_chat(model_.tokenizer(), out_.text.substr(common)));
    out_.history_tokens =
        std::max<int64_t>(0, static_cast<int64_t>(out_.ids.size()) - static_cast<int64_t>(rest.size()));
    return ok_status();
  }

  const ServedModel& model_;
  const std::shared_ptr<const GenerationDefaults> defaults_;
  const Conversation& conversation_;
  const GenerateJob& job_;
  Json messages_;
  std::vector<text::ToolSpec> tools_;
  BuiltPrompt out_;
};

Result<BuiltPrompt> build_text(const ServedModel& model, const std::string& text) {
  BuiltPrompt out;
  out.text = text;
  VEDETTE_ASSIGN_OR_RETURN(out.ids, model.tokenizer().encode(text));
  // An empty text begins where every text begins.
  if (out.ids.empty() && model.tokenizer().bos()) out.ids.push_back(*model.tokenizer().bos());
  return out;
}

Result<BuiltPrompt> build_ids(const ServedModel& model, const std::vector<int32_t>& ids) {
  BuiltPrompt out;
  out.ids = ids;
  out.text = model.tokenizer().decode(ids, true);
  return out;
}

}  // namespace

bool drop_volatile_lines(std::string& text) {
  std::string_view rest = text;
  while (rest.starts_with(kBillingHeader)) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  std::string kept;
  while (true) {
    const size_t at = rest.find(kTokenCount[0]);
    const size_t end = at == std::string_view::npos ? at : rest.find(kTokenCount[1], at);
    if (end == std::string_view::npos) break;
    kept += rest.substr(0, at);
    rest.remove_prefix(end + kTokenCount[1].size());
  }
  kept += rest;
  const bool dropped = kept.size() != text.size();
  text = std::move(kept);
  return dropped;
}

Result<BuiltPrompt> build_prompt(const ServedModel& model, const JobPrompt& prompt, const GenerateJob& job) {
  auto built = [&]() -> Result<BuiltPrompt> {
    if (const auto* conversation = std::get_if<Conversation>(&prompt))
      return ConversationRenderer(model, *conversation, job).build();
    if (const auto* text = std::get_if<std::string>(&prompt)) return build_text(model, *text);
    return build_ids(model, std::get<std::vector<int32_t>>(prompt));
  }();
  if (!built.ok()) return built;
  for (const int32_t id : built->ids) {
    if (id < 0 || id >= model.vocab_size())
      return invalid_request("prompt", "prompt: token id {} is outside the vocabulary, ids go from 0 to {}", id,
                             model.vocab_size() - 1);
  }
  return built;
}

}  // namespace vedette::server
