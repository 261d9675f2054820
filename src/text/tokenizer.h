// Text <-> token ids. Backed by the `tokenizers` crate behind rust/include/vedette_text.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/checkpoint.h"

namespace vedette::text {

struct EncodeOptions {
  bool add_special = true;    // BOS/EOS as the checkpoint says
  bool parse_special = true;  // special tokens written in the text become their ids
};

// What the tables of a tokenizer take once it is made, and while it is: near the truth, from the sizes of its source.
int64_t tokenizer_bytes(const weights::TokenizerSource& source);

// Immutable after creation; any thread.
class Tokenizer {
 public:
  // tokenizer.json (+ tokenizer_config) or a GGUF vocabulary. Errors: kCorruptFile, kUnsupported (pre-tokenizer
  // kind or model we do not know, by name), kNotFound (no tokenizer in the checkpoint).
  static Result<Tokenizer> create(const weights::TokenizerSource& source);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Ids of `text`; invalid UTF-8 is replaced (U+FFFD per ill-formed subsequence) before encoding.
  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Bytes one token stands for in running text: raw bytes for byte-level and byte-fallback tokens, the
  // SentencePiece space mark as ' '. Special (control) tokens give their text if `special`, else "".
  // Valid as long as the tokenizer.
  std::string_view token_bytes(int32_t id, bool special = false) const;
  // The same where the token is the first of a text: the leading space that the model's rule strips is gone.
  std::string first_token_bytes(int32_t id, bool special = false) const;
  // Whole text of a token run; equals the concatenation of token_bytes but for a leading space that the
  // model's rule strips at the start of a text.
  std::string decode(std::span<const int32_t> ids, bool special = false) const;
  // Whether the first decoded token's leading space is dropped (SentencePiece add_dummy_prefix).
  bool strips_leading_space() const;

  int64_t size() const;  // ids are 0 .. size()-1
  // Text without tokens written out in it becomes ids below this one; the rest are control tokens, and tokens added
  // beside the model, which stand for themselves alone.
  int64_t plain_size() const;
  bool is_special(int32_t id) const;
  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  std::optional<int32_t> id_of(std::string_view token) const;  // exact vocabulary entry

  struct Impl;  // text/vocabulary.h

 private:
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::text
