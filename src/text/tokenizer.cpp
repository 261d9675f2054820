#include "text/tokenizer.h"

#include "base/error.h"
#include "base/utf8.h"
#include "text/vocabulary.h"

namespace vedette::text {
namespace {

int64_t text_bytes(const std::vector<std::string>& texts) {
  int64_t bytes = 0;
  for (const std::string& text : texts) bytes += static_cast<int64_t>(text.size());
  return bytes;
}

}  // namespace

int64_t tokenizer_bytes(const weights::TokenizerSource& source) {
  // A word lies as text in three tables and has some 80 bytes of places and slots in them, a merge up to 48 bytes of
  // slots. Until the model is loaded the source's own strings are there as well.
  constexpr int64_t kWordBytes = 80, kMergeBytes = 48, kStringBytes = sizeof(std::string);
  if (const auto* gguf = std::get_if<weights::GgufVocabulary>(&source)) {
    const auto words = static_cast<int64_t>(gguf->tokens.size());
    const auto merges = static_cast<int64_t>(gguf->merges.size());
    return words * (kWordBytes + kStringBytes) + merges * (kMergeBytes + kStringBytes) + 4 * text_bytes(gguf->tokens) +
           2 * text_bytes(gguf->merges);
  }
  // The text of the file, and about as much again of tables.
  if (const auto* json = std::get_if<weights::HfTokenizer>(&source))
    return 5 * static_cast<int64_t>(json->tokenizer_json.size()) / 2;
  return 0;
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(const weights::TokenizerSource& source) {
  if (const auto* json = std::get_if<weights::HfTokenizer>(&source)) {
    VEDETTE_ASSIGN_OR_RETURN(auto impl, create_from_json(*json));
    return Tokenizer(std::move(impl));
  }
  if (const auto* gguf = std::get_if<weights::GgufVocabulary>(&source)) {
    VEDETTE_ASSIGN_OR_RETURN(auto impl, create_from_gguf(*gguf));
    return Tokenizer(std::move(impl));
  }
  return not_found("", "the checkpoint has no tokenizer: expected tokenizer.json or a GGUF vocabulary");
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (is_valid_utf8(text)) return impl_->encoder->encode(text, options);
  return impl_->encoder->encode(repair_utf8(text), options);
}

std::string_view Tokenizer::token_bytes(int32_t id, bool special) const {
  if (id < 0 || id >= size()) return {};
  const auto at = static_cast<size_t>(id);
  if (impl_->vocabulary.special[at] != 0 && !special) return {};
  return impl_->vocabulary.pieces[at];
}

std::string Tokenizer::first_token_bytes(int32_t id, bool special) const {
  std::string bytes(token_bytes(id, special));
  switch (impl_->vocabulary.leading_space) {
    case LeadingSpace::kKept:
      break;
    case LeadingSpace::kStripped:
      if (bytes.starts_with(' ')) bytes.erase(0, 1);
      break;
    case LeadingSpace::kMarksDropped:
      if (!bytes.empty() && !is_special(id))
        bytes = replace_all(impl_->vocabulary.texts[static_cast<size_t>(id)], kSpaceMark, "");
      break;
  }
  return bytes;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool special) const {
  std::string text;
  bool started = false;  // whether a token has written anything, its stripped space included
  for (const int32_t id : ids) {
    const std::string_view bytes = token_bytes(id, special);
    if (bytes.empty()) continue;
    if (started)
      text += bytes;
    else
      text += first_token_bytes(id, special);
    started = true;
  }
  return text;
}

bool Tokenizer::strips_leading_space() const {
  return impl_->vocabulary.leading_space != LeadingSpace::kKept;
}
int64_t Tokenizer::size() const {
  return static_cast<int64_t>(impl_->vocabulary.texts.size());
}

int64_t Tokenizer::plain_size() const {
  return impl_->vocabulary.plain_size;
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < size() && impl_->vocabulary.special[static_cast<size_t>(id)] != 0;
}

std::optional<int32_t> Tokenizer::bos() const {
  return impl_->vocabulary.bos;
}
std::optional<int32_t> Tokenizer::eos() const {
  return impl_->vocabulary.eos;
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  const int32_t id = impl_->vocabulary.index.find(token);
  if (id < 0) return std::nullopt;
  return id;
}

}  // namespace vedette::text
