// The tables every tokenizer has: entries by id, the bytes each stands for, and which are special.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/rust_bridge.h"
#include "text/token_index.h"
#include "text/tokenizer.h"

namespace vedette::text {

// Turns a text into ids. Immutable; any thread.
class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual Result<std::vector<int32_t>> encode(std::string_view valid_utf8, const EncodeOptions& options) const = 0;
};

// The mark that stands for a space inside pieces (U+2581).
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

// What becomes of a space at the start of a decoded text.
enum class LeadingSpace : uint8_t {
  kKept,
  kStripped,      // one space goes
  kMarksDropped,  // all space marks of the first token go (the library's Metaspace decoder)
};

struct Vocabulary {
  PackedTexts texts;             // entries as the file writes them; empty where an id does not exist
  PackedTexts pieces;            // bytes each entry stands for in running text
  std::vector<uint8_t> special;  // 1: control or unknown
  int64_t plain_size = 0;        // see Tokenizer
  TokenIndex index;              // over texts; built by the owner once texts are in place
  std::optional<int32_t> bos, eos;
  LeadingSpace leading_space = LeadingSpace::kKept;
};

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  std::unique_ptr<Encoder> encoder;
};

// The byte that a character of the GPT-2 byte alphabet stands for, -1 for others.
int byte_of_character(char32_t character);
// Bytes of an entry in that alphabet; the entry itself if any character is outside it.
std::string byte_level_bytes(std::string_view entry);
// The byte of "<0xNN>", -1 for other entries.
int byte_fallback_value(std::string_view entry);
// `text` with each `from` replaced by `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// What the two kinds of source build.
Result<std::unique_ptr<Tokenizer::Impl>> create_from_json(const weights::HfTokenizer& source);
Result<std::unique_ptr<Tokenizer::Impl>> create_from_gguf(const weights::GgufVocabulary& source);

}  // namespace vedette::text
