// llama-server's small routes: tokenize, detokenize, apply-template, adapters, and what is refused by name.
#include "base/error.h"
#include "base/utf8.h"
#include "server/chat_messages.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/prompt_builder.h"
#include "server/route.h"

namespace vedette::server {
namespace {

void refuse(const RouteCall& call, const Error& error) {
  send_error(nullptr, error, call.request, call.responder, {});
}

// A handler that needs the model and an object, and may fail.
template <typename Function>
void with_model(const RouteCall& call, Function&& function) {
  const auto model = call.core.models.current();
  if (!model.ok()) return refuse(call, model.error());
  const auto body = read_body(call.request);
  if (!body.ok()) return refuse(call, body.error());
  Result<Json> out = function(**model, *body);
  if (!out.ok()) return refuse(call, out.error());
  send_json(*out, 200, {}, call.responder);
}

// A string, an id, or a list of both.
Result<std::vector<int32_t>> encode_mixed(const ServedModel& model, const Fields& fields, std::string_view key,
                                          const text::EncodeOptions& options) {
  const Json* content = fields.get(key);
  if (content == nullptr) return std::vector<int32_t>();
  if (content->is_string()) return model.tokenizer().encode(content->as_string(), options);
  if (!content->is_array()) return fields.wrong(key, "a string, or a list of strings and token ids");
  std::vector<int32_t> out;
  text::EncodeOptions part = options;
  for (size_t i = 0; i < content->as_array().size(); ++i) {
    const Json& item = content->as_array()[i];
    if (item.is_string()) {
      VEDETTE_ASSIGN_OR_RETURN(const auto ids, model.tokenizer().encode(item.as_string(), part));
      out.insert(out.end(), ids.begin(), ids.end());
    } else if (item.is_int() && item.as_int() >= 0 && item.as_int() < model.vocab_size()) {
      out.push_back(static_cast<int32_t>(item.as_int()));
    } else {
      return wrong_value(fmt::format("{}[{}]", key, i),
                         fmt::format("a string or a token id from 0 to {}", model.vocab_size() - 1), &item);
    }
    part.add_special = false;
  }
  return out;
}

Json piece_json(std::string_view bytes) {
  if (is_valid_utf8(bytes)) return bytes;
  Json out = Json::array();
  for (const char byte : bytes) out.push_back(static_cast<int>(static_cast<unsigned char>(byte)));
  return out;
}

Result<Json> tokenize(const ServedModel& model, const Json& body) {
  const Fields fields(body);
  VEDETTE_ASSIGN_OR_RETURN(auto special, fields.boolean("add_special"));
  VEDETTE_ASSIGN_OR_RETURN(auto parse, fields.boolean("parse_special"));
  VEDETTE_ASSIGN_OR_RETURN(auto pieces, fields.boolean("with_pieces"));
  const text::EncodeOptions options{.add_special = special.value_or(false), .parse_special = parse.value_or(true)};
  VEDETTE_ASSIGN_OR_RETURN(const auto ids, encode_mixed(model, fields, "content", options));
  Json tokens = Json::array();
  for (const int32_t id : ids) {
    if (!pieces.value_or(false)) {
      tokens.push_back(id);
      continue;
    }
    Json entry = Json::object();
    entry.set("id", id);
    entry.set("piece", piece_json(model.tokenizer().token_bytes(id, true)));
    tokens.push_back(std::move(entry));
  }
  Json out = Json::object();
  out.set("tokens", std::move(tokens));
  return out;
}

Result<Json> detokenize(const ServedModel& model, const Json& body) {
  const Fields fields(body);
  VEDETTE_ASSIGN_OR_RETURN(const Json* list, fields.array("tokens"));
  if (list == nullptr) return fields.wrong("tokens", "a list of token ids");
  std::vector<int32_t> ids;
  for (size_t i = 0; i < list->as_array().size(); ++i) {
    const Json& id = list->as_array()[i];
    if (!id.is_int() || id.as_int() < 0 || id.as_int() >= model.vocab_size())
      return wrong_value(fmt::format("tokens[{}]", i), fmt::format("a token id from 0 to {}", model.vocab_size() - 1),
                         &id);
    ids.push_back(static_cast<int32_t>(id.as_int()));
  }
  Json out = Json::object();
  out.set("content", repair_utf8(model.tokenizer().decode(ids, true)));
  return out;
}

}  // namespace

void handle_tokenize(const RouteCall& call) {
  with_model(call, tokenize);
}

void handle_detokenize(const RouteCall& call) {
  with_model(call, detokenize);
}

// The same translation as the chat route, so that the text is what a chat request sends.
void handle_apply_template(const RouteCall& call) {
  with_model(call, [&](const ServedModel& model, const Json& body) -> Result<Json> {
    const std::shared_ptr<const GenerationDefaults> defaults = model.defaults.load();
    const DialectContext context{.request = call.request,
                                 .model = model.id,
                                 .tokenizer = model.tokenizer(),
                                 .vocab_size = model.vocab_size(),
                                 .context_length = model.engine->context_length(),
                                 .defaults = defaults->sampling,
                                 .has_template = model.chat_template.has_value(),
                                 .scope = ""};
    VEDETTE_ASSIGN_OR_RETURN(const Translation translation, kChatDialect.translate(body, context));
    VEDETTE_ASSIGN_OR_RETURN(const BuiltPrompt prompt,
                             build_prompt(model, translation.job.prompts.front(), translation.job));
    Json out = Json::object();
    out.set("prompt", prompt.text);
    return out;
  });
}

void handle_lora_list(const RouteCall& call) {
  send_json(Json::array(), 200, {}, call.responder);
}

void handle_lora_set(const RouteCall& call) {
  const auto body = parse_json(call.request.body, "request body");
  if (body.ok() && body->is_array() && body->as_array().empty())
    return send_json(Json::array(), 200, {}, call.responder);
  refuse(call, invalid_request("", "no adapter is loaded, so none can be set; expected an empty list"));
}

void handle_embeddings_refused(const RouteCall& call) {
  refuse(call, unsupported("", "{}: this server has a generation model, embeddings and reranking are not available",
                           call.request.path));
}

void handle_feature_disabled(const RouteCall& call) {
  Json inner = Json::object();
  inner.set("message", call.request.path + ": this feature is disabled");
  inner.set("type", "feature_disabled");
  inner.set("code", 403);
  Json out = Json::object();
  out.set("error", std::move(inner));
  send_json(out, 403, {}, call.responder);
}

}  // namespace vedette::server
