// Tokenizer, chat template and generation config of a model folder.
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "weights/gguf_vocabulary_file.h"
#include "weights/readers.h"

namespace vedette::weights {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTokenizerBytes = 256u << 20;
constexpr size_t kMaxConfigBytes = 32u << 20;  // tokenizer_config.json lists every added token

Result<std::optional<std::string>> read_optional(const std::string& folder, const char* name, size_t max_bytes) {
  const std::string path = (fs::path(folder) / name).string();
  if (!may_exist(path)) return std::optional<std::string>{};
  VEDETTE_ASSIGN_OR_RETURN(auto text, read_text_file(path, max_bytes));
  return std::optional(std::move(text));
}

Result<Json> read_optional_json(const std::string& folder, const char* name) {
  VEDETTE_ASSIGN_OR_RETURN(const auto text, read_optional(folder, name, kMaxConfigBytes));
  if (!text) return Json();
  return parse_json(*text, (fs::path(folder) / name).string(), {.max_bytes = kMaxConfigBytes});
}

// A template as a string, or the one named "default" of a list of {name, template}.
std::string template_of(const Json* value) {
  if (!value) return {};
  if (value->is_string()) return value->as_string();
  if (!value->is_array()) return {};
  for (const Json& item : value->as_array()) {
    const Json* name = item.find("name");
    const Json* text = item.find("template");
    if (name && name->is_string() && name->as_string() == "default" && text && text->is_string())
      return text->as_string();
  }
  return {};
}

Result<std::string> find_template(const std::string& folder, const Json& tokenizer_config, const Json& config) {
  VEDETTE_ASSIGN_OR_RETURN(auto jinja, read_optional(folder, "chat_template.jinja", kMaxConfigBytes));
  if (jinja) return std::move(*jinja);
  VEDETTE_ASSIGN_OR_RETURN(const Json file, read_optional_json(folder, "chat_template.json"));
  for (const Json* source : {&file, &tokenizer_config, &config})
    if (auto text = template_of(source->find("chat_template")); !text.empty()) return text;
  return std::string();
}

}  // namespace

Status read_tokenizer_files(const std::string& folder, Checkpoint& checkpoint) {
  VEDETTE_ASSIGN_OR_RETURN(checkpoint.generation_config, read_optional_json(folder, "generation_config.json"));
  VEDETTE_ASSIGN_OR_RETURN(Json tokenizer_config, read_optional_json(folder, "tokenizer_config.json"));
  VEDETTE_ASSIGN_OR_RETURN(checkpoint.chat_template, find_template(folder, tokenizer_config, checkpoint.config));
  VEDETTE_ASSIGN_OR_RETURN(auto tokenizer, read_optional(folder, "tokenizer.json", kMaxTokenizerBytes));
  if (!tokenizer) {
    const std::string vocabulary = (fs::path(folder) / kVocabularyFile).string();
    if (!may_exist(vocabulary)) return ok_status();
    VEDETTE_ASSIGN_OR_RETURN(checkpoint.tokenizer, read_vocabulary_file(vocabulary));
    return ok_status();
  }
  HfTokenizer out;
  out.tokenizer_json = std::move(*tokenizer);
  out.tokenizer_config = std::move(tokenizer_config);
  VEDETTE_ASSIGN_OR_RETURN(out.special_tokens_map, read_optional_json(folder, "special_tokens_map.json"));
  checkpoint.tokenizer = std::move(out);
  return ok_status();
}

}  // namespace vedette::weights
