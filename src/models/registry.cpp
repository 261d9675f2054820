#include "models/registry.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "models/tensor_check.h"

namespace vedette::models {

// One line per family: id (and build_<id> in families/<id>.cpp), display name, values of model_type, GGUF
// architectures; several are separated by spaces.
#define VEDETTE_FAMILIES(FAMILY)                                           \
  FAMILY(llama, "Llama", "llama", "llama")                                 \
  FAMILY(mistral, "Mistral", "mistral mistral3", "llama")                  \
  FAMILY(ministral3, "Ministral 3", "ministral3", "mistral3")              \
  FAMILY(qwen2, "Qwen 2", "qwen2", "qwen2")                                \
  FAMILY(qwen3, "Qwen 3", "qwen3", "qwen3")                                \
  FAMILY(gemma, "Gemma", "gemma", "gemma")                                 \
  FAMILY(gemma2, "Gemma 2", "gemma2", "gemma2")                            \
  FAMILY(gemma3, "Gemma 3", "gemma3_text gemma3", "gemma3")                \
  FAMILY(phi3, "Phi 3", "phi3", "phi3")                                    \
  FAMILY(smollm3, "SmolLM 3", "smollm3", "smollm3")                        \
  FAMILY(olmo2, "OLMo 2", "olmo2", "olmo2")                                \
  FAMILY(olmo3, "OLMo 3", "olmo3", "olmo2")                                \
  FAMILY(granite, "Granite", "granite", "granite")                         \
  FAMILY(cohere, "Command R", "cohere", "command-r")                       \
  FAMILY(cohere2, "Command R7B", "cohere2", "cohere2")                     \
  FAMILY(glm4, "GLM 4 (0414)", "glm4", "glm4")                             \
  FAMILY(exaone4, "EXAONE 4", "exaone4", "exaone4")                        \
  FAMILY(helium, "Helium", "helium", "")                                   \
  FAMILY(seed_oss, "Seed-OSS", "seed_oss", "seed_oss")                     \
  FAMILY(ernie4_5, "ERNIE 4.5", "ernie4_5", "ernie4_5")                    \
  FAMILY(hunyuan_v1_dense, "Hunyuan", "hunyuan_v1_dense", "hunyuan-dense") \
  FAMILY(starcoder2, "StarCoder 2", "starcoder2", "starcoder2")            \
  FAMILY(stablelm, "StableLM", "stablelm", "stablelm")                     \
  FAMILY(nemotron, "Nemotron", "nemotron", "nemotron")                     \
  FAMILY(apertus, "Apertus", "apertus", "apertus")                         \
  FAMILY(olmo, "OLMo", "olmo", "olmo")                                     \
  FAMILY(phi, "Phi 1 and 2", "phi", "phi2")                                \
  FAMILY(glm, "GLM 4", "glm", "chatglm")                                   \
  FAMILY(gpt2, "GPT-2", "gpt2", "gpt2")                                    \
  FAMILY(gpt_bigcode, "StarCoder", "gpt_bigcode", "starcoder")             \
  FAMILY(gpt_neox, "GPT-NeoX", "gpt_neox", "gptneox")

#define VEDETTE_DECLARE(id, name, types, gguf) Result<DecoderSpec> build_##id(const weights::Checkpoint& checkpoint);
VEDETTE_FAMILIES(VEDETTE_DECLARE)
#undef VEDETTE_DECLARE

namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

const Family* family_of(std::string_view model_type) {
  for (const Family& family : families())
    if (std::ranges::find(family.model_types, model_type) != family.model_types.end()) return &family;
  return nullptr;
}

std::string type_of(const Json& config) {
  const Json* type = config.find("model_type");
  return type && type->is_string() ? lower(type->as_string()) : std::string();
}

std::string supported_types() {
  std::string out;
  for (const Family& family : families())
    for (const std::string_view type : family.model_types) {
      if (!out.empty()) out += ", ";
      out += type;
    }
  return out;
}

}  // namespace

std::span<const Family> families() {
#define VEDETTE_ENTRY(id, name, types, gguf) {#id, name, "Dense text", words(types), words(gguf), build_##id},
  static const std::vector<Family> kFamilies{VEDETTE_FAMILIES(VEDETTE_ENTRY)};
#undef VEDETTE_ENTRY
  return kFamilies;
}

Result<const Family*> find_family(const Json& config) {
  const std::string type = type_of(config);
  if (type.empty())
    return unsupported("model_type", "config.json: 'model_type' must be a string that names a model family; known: {}",
                       supported_types());
  const Family* family = family_of(type);
  if (!family)
    return unsupported("model_type", "config.json: 'model_type' is '{}', which is not supported; known: {}",
                       type.substr(0, 60), supported_types());
  // A multimodal checkpoint that is known says itself which text model it holds.
  const Json* text = config.find("text_config");
  const std::string text_type = text ? type_of(*text) : std::string();
  if (text_type.empty()) return family;
  if (const Family* inner = family_of(text_type)) return inner;
  return unsupported("text_config.model_type",
                     "config.json: 'text_config.model_type' is '{}', which is not supported; known: {}",
                     text_type.substr(0, 60), supported_types());
}

Result<DecoderSpec> build_spec(const weights::Checkpoint& checkpoint) {
  VEDETTE_ASSIGN_OR_RETURN(const Family* family, find_family(checkpoint.config));
  const Json* quantization = checkpoint.config.find("quantization_config");
  if (const Json* method = quantization ? quantization->find("quant_method") : nullptr; method && method->is_string())
    return unsupported("quantization_config.quant_method",
                       "{}: 'quantization_config.quant_method' is '{}', which is not supported; use an unquantized, "
                       "MLX or GGUF version of this model",
                       checkpoint.path, method->as_string().substr(0, 60));
  VEDETTE_ASSIGN_OR_RETURN(DecoderSpec spec, family->build(checkpoint));
  spec.family = family->id;
  VEDETTE_RETURN_IF_ERROR(check_tensors(checkpoint, spec));
  return spec;
}

}  // namespace vedette::models
