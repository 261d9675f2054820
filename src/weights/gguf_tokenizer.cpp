// tokenizer.ggml.*: the vocabulary that a GGUF file carries.
#include <algorithm>

#include "base/error.h"
#include "weights/gguf_config.h"
#include "weights/message_text.h"

namespace vedette::weights {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

template <typename T>
std::vector<T> take(GgufFile& gguf, std::string_view key) {
  const auto at = gguf.metadata.find(std::string(kPrefix) + std::string(key));
  if (at == gguf.metadata.end()) return {};
  auto* list = std::get_if<GgufArray>(&at->second);
  auto* values = list ? std::get_if<std::vector<T>>(&list->values) : nullptr;
  return values ? std::move(*values) : std::vector<T>{};
}

Error wrong_size(const std::string& file, std::string_view key, size_t found, size_t tokens) {
  return corrupt_file(std::string(kPrefix) + std::string(key),
                      "{}: '{}{}' has {} entries, 'tokenizer.ggml.tokens' has {}", file, kPrefix, key, found, tokens);
}

// An id of the vocabulary, or none; out of range is an error.
Status read_id(const GgufFile& gguf, std::string_view key, size_t tokens, std::optional<int32_t>& out,
               const std::string& file) {
  const std::string name = std::string(kPrefix) + std::string(key);
  const auto value = gguf.integer(name);
  if (!value || *value == -1 || *value == UINT32_MAX) return ok_status();
  if (*value < 0 || *value >= static_cast<int64_t>(tokens))
    return corrupt_file(name, "{}: '{}' is {}, the vocabulary has {} tokens", file, name, *value, tokens);
  out = static_cast<int32_t>(*value);
  return ok_status();
}

Status read_ids(const GgufFile& gguf, GgufVocabulary& out, const std::string& file) {
  const std::pair<std::string_view, std::optional<int32_t>*> ids[] = {
      {"bos_token_id", &out.bos},         {"eos_token_id", &out.eos},         {"eot_token_id", &out.eot},
      {"eom_token_id", &out.eom},         {"unknown_token_id", &out.unknown}, {"seperator_token_id", &out.separator},
      {"padding_token_id", &out.padding}, {"mask_token_id", &out.mask},       {"cls_token_id", &out.cls}};
  for (const auto& [key, target] : ids) VEDETTE_RETURN_IF_ERROR(read_id(gguf, key, out.tokens.size(), *target, file));
  return ok_status();
}

}  // namespace

Result<TokenizerSource> gguf_tokenizer(GgufFile& gguf, const std::string& file) {
  const std::string* model = gguf.string("tokenizer.ggml.model");
  if (!model || *model == "none" || *model == "no_vocab") return TokenizerSource(std::monostate{});
  GgufVocabulary out;
  out.model = *model;
  if (const std::string* pre = gguf.string("tokenizer.ggml.pre")) out.pre = *pre;
  out.tokens = take<std::string>(gguf, "tokens");
  if (out.tokens.empty())
    return corrupt_file("tokenizer.ggml.tokens", "{}: tokenizer '{}' without 'tokenizer.ggml.tokens' (0 tokens)", file,
                        shown(out.model));
  out.scores = take<float>(gguf, "scores");
  out.merges = take<std::string>(gguf, "merges");
  for (const int64_t type : take<int64_t>(gguf, "token_type")) out.types.push_back(static_cast<int32_t>(type));
  if (!out.scores.empty() && out.scores.size() != out.tokens.size())
    return wrong_size(file, "scores", out.scores.size(), out.tokens.size());
  if (!out.types.empty() && out.types.size() != out.tokens.size())
    return wrong_size(file, "token_type", out.types.size(), out.tokens.size());
  VEDETTE_RETURN_IF_ERROR(read_ids(gguf, out, file));
  out.add_bos = gguf.boolean("tokenizer.ggml.add_bos_token");
  out.add_eos = gguf.boolean("tokenizer.ggml.add_eos_token");
  out.add_space_prefix = gguf.boolean("tokenizer.ggml.add_space_prefix");
  out.remove_extra_whitespaces = gguf.boolean("tokenizer.ggml.remove_extra_whitespaces");
  out.escape_whitespaces = gguf.boolean("tokenizer.ggml.escape_whitespaces");
  return TokenizerSource(std::move(out));
}

}  // namespace vedette::weights
