#include "weights/gguf_vocabulary_file.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "weights/gguf.h"
#include "weights/gguf_config.h"

namespace vedette::weights {
namespace {

enum class Type : uint32_t { kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9 };

// Appends metadata and counts it.
class Writer {
 public:
  void string(std::string_view key, std::string_view value) {
    begin(key, Type::kString);
    text(value);
  }
  void boolean(std::string_view key, const std::optional<bool>& value) {
    if (!value) return;
    begin(key, Type::kBool);
    number<uint8_t>(*value ? 1 : 0);
  }
  void integer(std::string_view key, const std::optional<int32_t>& value) {
    if (!value) return;
    begin(key, Type::kI32);
    number<int32_t>(*value);
  }
  void strings(std::string_view key, const std::vector<std::string>& values) {
    if (!begin_array(key, Type::kString, values.size())) return;
    for (const std::string& value : values) text(value);
  }
  template <typename T>
  void numbers(std::string_view key, Type type, const std::vector<T>& values) {
    if (!begin_array(key, type, values.size())) return;
    for (const T value : values) number(value);
  }

  std::string finish() const {
    std::string out = "GGUF";
    const auto put = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(uint32_t{3});
    put(uint64_t{0});
    put(count_);
    return out + body_;
  }

 private:
  template <typename T>
  void number(T value) {
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number<uint64_t>(value.size());
    body_ += value;
  }
  void begin(std::string_view key, Type type) {
    text("tokenizer.ggml." + std::string(key));
    number(static_cast<uint32_t>(type));
    ++count_;
  }
  bool begin_array(std::string_view key, Type type, size_t size) {
    if (size == 0) return false;
    begin(key, Type::kArray);
    number(static_cast<uint32_t>(type));
    number<uint64_t>(size);
    return true;
  }

  std::string body_;
  uint64_t count_ = 0;
};

}  // namespace

std::string vocabulary_bytes(const GgufVocabulary& vocabulary) {
  Writer out;
  out.string("model", vocabulary.model);
  out.string("pre", vocabulary.pre);
  out.strings("tokens", vocabulary.tokens);
  out.numbers("scores", Type::kF32, vocabulary.scores);
  out.numbers("token_type", Type::kI32, vocabulary.types);
  out.strings("merges", vocabulary.merges);
  out.integer("bos_token_id", vocabulary.bos);
  out.integer("eos_token_id", vocabulary.eos);
  out.integer("eot_token_id", vocabulary.eot);
  out.integer("eom_token_id", vocabulary.eom);
  out.integer("unknown_token_id", vocabulary.unknown);
  out.integer("seperator_token_id", vocabulary.separator);
  out.integer("padding_token_id", vocabulary.padding);
  out.integer("mask_token_id", vocabulary.mask);
  out.integer("cls_token_id", vocabulary.cls);
  out.boolean("add_bos_token", vocabulary.add_bos);
  out.boolean("add_eos_token", vocabulary.add_eos);
  out.boolean("add_space_prefix", vocabulary.add_space_prefix);
  out.boolean("remove_extra_whitespaces", vocabulary.remove_extra_whitespaces);
  out.boolean("escape_whitespaces", vocabulary.escape_whitespaces);
  return out.finish();
}

Result<TokenizerSource> read_vocabulary_file(const std::string& path) {
  VEDETTE_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  VEDETTE_ASSIGN_OR_RETURN(auto gguf, parse_gguf(file->bytes(), path));
  return gguf_tokenizer(gguf, path);
}

}  // namespace vedette::weights
