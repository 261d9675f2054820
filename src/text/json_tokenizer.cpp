// tokenizer.json, with what tokenizer_config.json and special_tokens_map.json add to it.
#include <charconv>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/vocabulary.h"

namespace vedette::text {
namespace {

constexpr size_t kMaxJsonBytes = size_t{1} << 30;

// ---- Decoders -----------------------------------------------------------------------------------------------------

struct Replace {
  std::string from, to;
};
struct ByteLevel {};
struct ByteFallback {};
struct WordPiece {
  std::string prefix;
};
using DecodeStep = std::variant<Replace, ByteLevel, ByteFallback, WordPiece>;

// What one entry stands for: the part of a decoder that acts on tokens one by one.
struct Decoder {
  std::vector<DecodeStep> steps;
  LeadingSpace leading_space = LeadingSpace::kKept;
};

std::string string_field(const Json& object, std::string_view key, std::string_view fallback) {
  const Json* value = object.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : std::string(fallback);
}

void add_steps(const Json& json, Decoder& decoder, int depth) {
  if (!json.is_object() || depth > 8) return;
  const std::string type = string_field(json, "type", "");
  if (type == "Sequence") {
    const Json* parts = json.find("decoders");
    if (parts != nullptr && parts->is_array())
      for (const Json& part : parts->as_array()) add_steps(part, decoder, depth + 1);
  } else if (type == "ByteLevel") {
    decoder.steps.push_back(ByteLevel{});
  } else if (type == "ByteFallback") {
    decoder.steps.push_back(ByteFallback{});
  } else if (type == "Metaspace") {
    decoder.steps.push_back(Replace{string_field(json, "replacement", kSpaceMark), " "});
    if (string_field(json, "prepend_scheme", "always") != "never") decoder.leading_space = LeadingSpace::kMarksDropped;
  } else if (type == "Replace") {
    const Json* pattern = json.find("pattern");
    if (pattern == nullptr) return;
    const std::string from = string_field(*pattern, "String", "");
    if (!from.empty()) decoder.steps.push_back(Replace{from, string_field(json, "content", "")});
  } else if (type == "Strip") {
    const Json* start = json.find("start");
    if (string_field(json, "content", " ") == " " && start != nullptr && start->is_int() && start->as_int() > 0)
      decoder.leading_space = LeadingSpace::kStripped;
  } else if (type == "BPEDecoder") {
    decoder.steps.push_back(Replace{string_field(json, "suffix", "</w>"), " "});
  } else if (type == "WordPiece") {
    decoder.steps.push_back(WordPiece{string_field(json, "prefix", "##")});
    decoder.leading_space = LeadingSpace::kStripped;
  }
}

Decoder read_decoder(const Json& description) {
  Decoder decoder;
  const Json* json = description.find("decoder");
  if (json == nullptr || json->is_null()) {
    // Without a decoder tokens are joined by spaces, which is a word-piece decoder without continuations.
    decoder.steps.push_back(WordPiece{});
    decoder.leading_space = LeadingSpace::kStripped;
  } else {
    add_steps(*json, decoder, 0);
  }
  return decoder;
}

std::string decode_entry(const Decoder& decoder, std::string_view entry) {
  std::string text(entry);
  for (const DecodeStep& step : decoder.steps) {
    if (const auto* replace = std::get_if<Replace>(&step)) {
      text = replace_all(text, replace->from, replace->to);
    } else if (std::holds_alternative<ByteLevel>(step)) {
      text = byte_level_bytes(text);
    } else if (std::holds_alternative<ByteFallback>(step)) {
      const int byte = byte_fallback_value(text);
      if (byte >= 0) return std::string(1, static_cast<char>(byte));
    } else if (const auto* word_piece = std::get_if<WordPiece>(&step)) {
      if (!word_piece->prefix.empty() && text.starts_with(word_piece->prefix))
        text.erase(0, word_piece->prefix.size());
      else
        text.insert(0, " ");
    }
  }
  return text;
}

// ---- Tokens named in the side files -------------------------------------------------------------------------------

constexpr std::string_view kNamedTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                             "pad_token", "cls_token", "mask_token"};

// A token given as text or as {"content": ...}; empty if neither.
std::string token_text(const Json* token) {
  if (token == nullptr) return {};
  if (token->is_string()) return token->as_string();
  return string_field(*token, "content", "");
}

Json added_token(const Json& given, bool special_by_name) {
  const auto flag = [&](std::string_view key, bool fallback) {
    const Json* value = given.find(key);
    return value != nullptr && value->is_bool() ? value->as_bool() : fallback;
  };
  const bool special = special_by_name || flag("special", false);
  Json token = Json::object();
  token.set("content", token_text(&given));
  token.set("special", special);
  token.set("normalized", flag("normalized", !special));
  for (const std::string_view key : {"single_word", "lstrip", "rstrip"}) token.set(key, flag(key, false));
  return token;
}

// Named token: the configuration's if it has the key (null means none), else the map's.
const Json* named_token(const weights::HfTokenizer& source, std::string_view name) {
  const Json* token = source.tokenizer_config.find(name);
  return token != nullptr ? token : source.special_tokens_map.find(name);
}

// Everything the side files name, in the order it is added where missing.
Json extra_tokens(const weights::HfTokenizer& source) {
  Json tokens = Json::array();
  const Json* listed = source.tokenizer_config.find("added_tokens_decoder");
  if (listed != nullptr && listed->is_object())
    for (const auto& [id, token] : listed->as_object()) {
      if (token_text(&token).empty()) continue;
      Json added = added_token(token, false);
      int64_t number = -1;
      const auto [end, problem] = std::from_chars(id.data(), id.data() + id.size(), number);
      if (problem == std::errc() && end == id.data() + id.size() && number >= 0) added.set("id", number);
      tokens.push_back(std::move(added));
    }
  for (const std::string_view name : kNamedTokens) {
    const Json* token = named_token(source, name);
    if (!token_text(token).empty()) tokens.push_back(added_token(*token, true));
  }
  for (const std::string_view name : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* more = named_token(source, name);
    if (more == nullptr || !more->is_array()) continue;
    for (const Json& token : more->as_array())
      if (!token_text(&token).empty()) tokens.push_back(added_token(token, true));
  }
  return tokens;
}

// ---- Encoder ------------------------------------------------------------------------------------------------------

class JsonEncoder : public Encoder {
 public:
  explicit JsonEncoder(RustTokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    VtIds ids;
    VtBytes error;
    const VtStatus status = vt_tokenizer_encode(tokenizer_.get(), bytes_of(text), text.size(), options.add_special,
                                                options.parse_special, &ids, &error);
    // A failure inside the library, too, comes from the file: the text is valid UTF-8.
    if (status != kVtOk) return rust_error(kVtInvalid, error, ErrorKind::kCorruptFile, "tokenizer.json");
    const std::vector<uint32_t> taken = take(ids);
    return std::vector<int32_t>(taken.begin(), taken.end());
  }

  const VtTokenizer* get() const { return tokenizer_.get(); }

 private:
  RustTokenizer tokenizer_;
};

Result<Json> describe(const VtTokenizer* tokenizer) {
  VtBytes text, error;
  const VtStatus status = vt_tokenizer_describe(tokenizer, &text, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kCorruptFile, "tokenizer.json");
  return parse_json(take(text), "tokenizer.json", {.max_bytes = kMaxJsonBytes});
}

Status fill_tables(const VtTokenizer* tokenizer, const Json& description, Vocabulary& vocabulary) {
  VtBytes bytes, error;
  VtIds ends;
  const VtStatus status = vt_tokenizer_tokens(tokenizer, &bytes, &ends, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kCorruptFile, "tokenizer.json");
  std::string texts = take(bytes);
  vocabulary.texts = PackedTexts(std::move(texts), take(ends));
  vocabulary.index.build(vocabulary.texts);

  const Decoder decoder = read_decoder(description);
  vocabulary.leading_space = decoder.leading_space;
  const size_t size = vocabulary.texts.size();
  for (size_t id = 0; id < size; ++id) vocabulary.pieces.add(decode_entry(decoder, vocabulary.texts[id]));
  vocabulary.special.assign(size, 0);
  std::vector<uint8_t> written_out(size, 0);  // tokens added beside the model
  if (const Json* added = description.find("added_tokens"); added != nullptr && added->is_array()) {
    for (const Json& token : added->as_array()) {
      const Json* id = token.find("id");
      const Json* special = token.find("special");
      if (id == nullptr || !id->is_int() || special == nullptr || !special->is_bool()) continue;
      if (id->as_int() >= 0 && id->as_int() < static_cast<int64_t>(size)) {
        vocabulary.special[static_cast<size_t>(id->as_int())] = special->as_bool() ? 1 : 0;
        written_out[static_cast<size_t>(id->as_int())] = 1;
      }
    }
  }
  for (size_t id = 0; id < size; ++id)
    if (written_out[id] == 0 && !vocabulary.texts[id].empty()) vocabulary.plain_size = static_cast<int64_t>(id) + 1;
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> create_from_json(const weights::HfTokenizer& source) {
  const std::string extra = extra_tokens(source).dump();
  VtTokenizer* raw = nullptr;
  VtBytes error;
  const VtStatus status = vt_tokenizer_from_json(bytes_of(source.tokenizer_json), source.tokenizer_json.size(),
                                                 bytes_of(extra), extra.size(), &raw, &error);
  if (status != kVtOk) {
    // A failure inside the library while reading is the file's fault: the library takes its fields on trust.
    return rust_error(kVtInvalid, error, ErrorKind::kCorruptFile, status == kVtPanic ? "tokenizer.json" : "");
  }
  auto encoder = std::make_unique<JsonEncoder>(RustTokenizer(raw));
  auto impl = std::make_unique<Tokenizer::Impl>();
  VEDETTE_ASSIGN_OR_RETURN(const Json description, describe(encoder->get()));
  VEDETTE_RETURN_IF_ERROR(fill_tables(encoder->get(), description, impl->vocabulary));
  const auto id_of = [&](std::string_view name) -> std::optional<int32_t> {
    const int32_t id = impl->vocabulary.index.find(token_text(named_token(source, name)));
    return id < 0 ? std::nullopt : std::optional(id);
  };
  impl->vocabulary.bos = id_of("bos_token");
  impl->vocabulary.eos = id_of("eos_token");
  impl->encoder = std::move(encoder);
  return impl;
}

}  // namespace vedette::text
