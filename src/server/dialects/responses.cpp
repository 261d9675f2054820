// OpenAI Responses: https://platform.openai.com/docs/api-reference/responses
#include <utility>

#include "base/error.h"
#include "server/dialects/openai.h"
#include "server/dialects/responses_input.h"
#include "server/response_store.h"

namespace vedette::server {
namespace {

using PartKind = text::MessagePart::Kind;
using ItemKind = AnswerItem::Kind;

Json error_body(const Error& error, int status) {
  Json out = openai_error(error, status);
  Json inner = *out.find("error");
  inner.set("code", Json());
  out.set("error", std::move(inner));
  return out;
}

Json text_part(std::string_view type, std::string_view text, const Json& logprobs = Json::array()) {
  Json out = Json::object();
  out.set("type", type);
  out.set("text", text);
  if (type == "output_text") {
    out.set("annotations", Json::array());
    out.set("logprobs", logprobs);
  }
  return out;
}

// One output item, in the form it has at that moment.
struct OutputItem {
  ItemKind kind = ItemKind::kContent;
  std::string id;
  std::string text;               // content, reasoning, or arguments
  Json logprobs = Json::array();  // of content's tokens, where asked for
  std::string call_id, name, space;
  bool done = false;

  Json json(std::string_view status) const {
    Json out = Json::object();
    out.set("id", id);
    if (kind == ItemKind::kCall) {
      out.set("type", "function_call");
      out.set("status", status);
      out.set("arguments", text);
      out.set("call_id", call_id);
      out.set("name", name);
      if (!space.empty()) out.set("namespace", space);
      return out;
    }
    const bool reasoning = kind == ItemKind::kReasoning;
    Json content = Json::array();
    if (done || !text.empty())
      content.push_back(text_part(reasoning ? "reasoning_text" : "output_text", text, logprobs));
    out.set("type", reasoning ? "reasoning" : "message");
    out.set("status", status);
    if (reasoning) {
      out.set("summary", Json::array());
      out.set("encrypted_content", Json());
    } else {
      out.set("role", "assistant");
    }
    out.set("content", std::move(content));
    return out;
  }
};

class ResponsesWriter final : public AnswerWriter {
 public:
  ResponsesWriter(ResponsesRequest request, const DialectContext& context)
      : request_(std::move(request)), tokenizer_(context.tokenizer), store_(context.responses), scope_(context.scope) {}

  Json body(const JobStart& start, const JobAnswer& answer) override { return final_object(start, answer); }

  void begin(const JobStart& start, std::string& out) override {
    for (const char* type : {"response.created", "response.in_progress"}) {
      Json frame = Json::object();
      frame.set("response", object(start, "in_progress", Json::array()));
      send(type, std::move(frame), out);
    }
  }

  void event(const JobEvent& event, const JobStart& start, std::string& out) override {
    if (event.kind != JobEvent::Kind::kText) return;
    for (size_t i = 0; i < event.parts.size(); ++i) {
      Json logprobs = Json::array();
      if (!event.part_logprobs.empty()) logprobs = token_logprobs_json(tokenizer_, event.part_logprobs[i]);
      add(event.parts[i], std::move(logprobs), start, out);
    }
  }

  void finish(const JobStart& start, const JobAnswer& answer, std::string& out) override {
    close_item(cut_short(answer) ? "incomplete" : "completed", out);
    Json frame = Json::object();
    frame.set("response", final_object(start, answer));
    // There is no event for a cancelled one; its status says so.
    send(cut_short(answer) ? "response.incomplete" : "response.completed", std::move(frame), out);
  }

  void fail(const Error& error, std::string& out) override {
    Json inner = Json::object();
    inner.set("code", error.kind == ErrorKind::kInvalidRequest ? "invalid_prompt" : "server_error");
    inner.set("message", error.message);
    Json response = request_.echo;
    response.set("id", response_id_.empty() ? Json() : Json(response_id_));
    response.set("object", "response");
    response.set("status", "failed");
    response.set("error", std::move(inner));
    response.set("output", Json::array());
    Json frame = Json::object();
    frame.set("response", std::move(response));
    send("response.failed", std::move(frame), out);
  }

  void keep_alive(std::string& out) override { out += ": keep-alive\n\n"; }

  std::string answer_id(const JobStart& start) const override { return "resp_" + start.id; }

  void completed(const JobStart& start, const JobAnswer& answer) override {
    if (store_ == nullptr) return;
    const Json whole = final_object(start, answer);
    const Json& output = *whole.find("output");
    Json turn = request_.input_items;
    for (const Json& item : output.as_array()) turn.push_back(item);
    if (request_.conversation && !was_cancelled(answer))
      store_->append_conversation(scope_, *request_.conversation, turn);
    if (!request_.store) return;
    Json history = request_.history_items;
    for (const Json& item : turn.as_array()) history.push_back(item);
    store_->put(scope_, answer_id(start), {whole, std::move(history)});
  }

 private:
  static bool was_cancelled(const JobAnswer& answer) {
    return answer.choices.front().reason == engine::FinishReason::kCancelled;
  }
  static bool cut_short(const JobAnswer& answer) {
    return was_cancelled(answer) || answer.choices.front().reason == engine::FinishReason::kLength;
  }

  static std::string item_id(ItemKind kind, const JobStart& start, size_t index) {
    const char* prefix = kind == ItemKind::kCall ? "fc_" : kind == ItemKind::kReasoning ? "rs_" : "msg_";
    return fmt::format("{}{}{:02x}", prefix, start.id, index);
  }

  Json object(const JobStart& start, std::string_view status, Json output) const {
    Json out = Json::object();
    out.set("id", answer_id(start));
    out.set("object", "response");
    out.set("created_at", start.created);
    out.set("status", status);
    out.set("error", Json());
    out.set("incomplete_details", Json());
    out.set("model", start.model);
    out.set("output", std::move(output));
    for (const auto& [key, value] : request_.echo.as_object()) out.set(key, value);
    if (request_.conversation) {
      Json conversation = Json::object();
      conversation.set("id", *request_.conversation);
      out.set("conversation", std::move(conversation));
    }
    out.set("usage", Json());
    return out;
  }

  OutputItem make_item(ItemKind kind, const JobStart& start, size_t index) const {
    OutputItem item;
    item.kind = kind;
    item.id = item_id(kind, start, index);
    return item;
  }

  void name_call(OutputItem& item, const std::string& id, const std::string& name) const {
    item.call_id = "call_" + id;
    item.name = name;
    const auto space = request_.namespaces.find(name);
    if (space != request_.namespaces.end()) item.space = space->second;
  }

  // The answer as a whole; the same ids and order as in the stream.
  Json final_object(const JobStart& start, const JobAnswer& answer) const {
    const ChoiceAnswer& choice = answer.choices.front();
    Json output = Json::array();
    for (size_t i = 0; i < choice.items.size(); ++i) {
      OutputItem item = make_item(choice.items[i].kind, start, i);
      item.done = true;
      item.text = choice.items[i].text;
      item.logprobs = token_logprobs_json(tokenizer_, choice.items[i].logprobs);
      if (item.kind == ItemKind::kCall) {
        const CallAnswer& call = choice.calls[choice.items[i].call];
        name_call(item, call.id, call.name);
        item.text = call.arguments;
      }
      const bool last_cut = cut_short(answer) && i + 1 == choice.items.size();
      output.push_back(item.json(last_cut ? "incomplete" : "completed"));
    }
    const bool gone = was_cancelled(answer);
    Json out = object(start, gone ? "cancelled" : cut_short(answer) ? "incomplete" : "completed", std::move(output));
    out.set("completed_at", gone ? Json() : Json(start.created));
    if (cut_short(answer) && !gone) {
      Json details = Json::object();
      details.set("reason", "max_output_tokens");
      out.set("incomplete_details", std::move(details));
    }
    Json cached = Json::object();
    cached.set("cached_tokens", answer.cached_tokens);
    cached.set("cache_write_tokens", 0);  // clients' types ask for it; writing costs nothing here and is not counted
    Json reasoning = Json::object();
    reasoning.set("reasoning_tokens", answer.reasoning_tokens);
    Json usage = Json::object();
    usage.set("input_tokens", answer.prompt_tokens);
    usage.set("input_tokens_details", std::move(cached));
    usage.set("output_tokens", answer.completion_tokens);
    usage.set("output_tokens_details", std::move(reasoning));
    usage.set("total_tokens", answer.prompt_tokens + answer.completion_tokens);
    out.set("usage", std::move(usage));
    out.set("x_vedette", answer.x_vedette);
    return out;
  }

  void send(std::string_view type, Json frame, std::string& out) {
    Json whole = Json::object();
    whole.set("type", type);
    whole.set("sequence_number", sequence_++);
    for (auto& [key, value] : frame.as_object()) whole.set(key, std::move(value));
    append_sse(out, type, whole.dump());
  }

  Json item_frame() const {
    Json frame = Json::object();
    frame.set("item_id", item_.id);
    frame.set("output_index", index_);
    if (item_.kind != ItemKind::kCall) frame.set("content_index", 0);
    return frame;
  }

  void open_item(OutputItem item, std::string& out) {
    close_item("completed", out);
    item_ = std::move(item);
    open_ = true;
    Json frame = Json::object();
    frame.set("output_index", index_);
    frame.set("item", item_.json("in_progress"));
    send("response.output_item.added", std::move(frame), out);
    if (item_.kind == ItemKind::kCall) return;
    Json part = item_frame();
    part.set("part", text_part(item_.kind == ItemKind::kReasoning ? "reasoning_text" : "output_text", ""));
    send("response.content_part.added", std::move(part), out);
  }

  void append(std::string_view text, Json logprobs, std::string& out) {
    item_.text += text;
    for (const Json& token : logprobs.as_array()) item_.logprobs.push_back(token);
    Json frame = item_frame();
    frame.set("delta", text);
    if (item_.kind == ItemKind::kContent) frame.set("logprobs", std::move(logprobs));
    send(item_.kind == ItemKind::kCall        ? "response.function_call_arguments.delta"
         : item_.kind == ItemKind::kReasoning ? "response.reasoning_text.delta"
                                              : "response.output_text.delta",
         std::move(frame), out);
  }

  void close_item(std::string_view status, std::string& out) {
    if (!open_) return;
    open_ = false;
    item_.done = true;
    Json done = item_frame();
    if (item_.kind == ItemKind::kCall) {
      done.set("name", item_.name);
      done.set("arguments", item_.text);
      send("response.function_call_arguments.done", std::move(done), out);
    } else {
      const bool reasoning = item_.kind == ItemKind::kReasoning;
      done.set("text", item_.text);
      if (!reasoning) done.set("logprobs", item_.logprobs);
      send(reasoning ? "response.reasoning_text.done" : "response.output_text.done", std::move(done), out);
      Json part = item_frame();
      part.set("part", text_part(reasoning ? "reasoning_text" : "output_text", item_.text, item_.logprobs));
      send("response.content_part.done", std::move(part), out);
    }
    Json frame = Json::object();
    frame.set("output_index", index_++);
    frame.set("item", item_.json(status));
    send("response.output_item.done", std::move(frame), out);
  }

  void add(const text::MessagePart& part, Json logprobs, const JobStart& start, std::string& out) {
    response_id_ = answer_id(start);
    const auto next = [&] { return static_cast<size_t>(index_) + (open_ ? 1 : 0); };
    switch (part.kind) {
      case PartKind::kReasoning:
      case PartKind::kContent: {
        const ItemKind kind = part.kind == PartKind::kReasoning ? ItemKind::kReasoning : ItemKind::kContent;
        if (!open_ || item_.kind != kind) open_item(make_item(kind, start, next()), out);
        append(part.text, std::move(logprobs), out);
        break;
      }
      case PartKind::kCallBegin: {
        OutputItem item = make_item(ItemKind::kCall, start, next());
        name_call(item, start.call_ids[0][static_cast<size_t>(part.call)], part.text);
        open_item(std::move(item), out);
        break;
      }
      case PartKind::kArguments:
        append(part.text, Json::array(), out);
        break;
      case PartKind::kCallEnd:
        // An incomplete last call is closed at the end, where it is known to be cut.
        break;
    }
  }

  const ResponsesRequest request_;
  const text::Tokenizer& tokenizer_;
  ResponseStore* const store_;
  const std::string scope_;
  std::string response_id_;
  int64_t sequence_ = 0;
  int64_t index_ = 0;
  bool open_ = false;
  OutputItem item_;
};

Result<Translation> translate(const Json& body, const DialectContext& context) {
  Translation out;
  VEDETTE_ASSIGN_OR_RETURN(ResponsesRequest request, read_responses_request(body, context, out.job));
  out.writer = std::make_unique<ResponsesWriter>(std::move(request), context);
  return out;
}

}  // namespace

const Dialect kResponsesDialect{"responses", translate, error_body};

}  // namespace vedette::server
