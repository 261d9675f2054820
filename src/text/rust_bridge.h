// Owning wrappers around the C border of rust/include/vedette_text.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vedette_text.h"

namespace vedette::text {

struct VtTokenizerDelete {
  void operator()(VtTokenizer* tokenizer) const { vt_tokenizer_free(tokenizer); }
};
using RustTokenizer = std::unique_ptr<VtTokenizer, VtTokenizerDelete>;

struct VtTemplateDelete {
  void operator()(VtTemplate* chat_template) const { vt_template_free(chat_template); }
};
using RustTemplate = std::unique_ptr<VtTemplate, VtTemplateDelete>;

struct VtGrammarsDelete {
  void operator()(VtGrammars* grammars) const { vt_grammars_free(grammars); }
};
using RustGrammars = std::unique_ptr<VtGrammars, VtGrammarsDelete>;

struct VtMatcherDelete {
  void operator()(VtMatcher* matcher) const { vt_matcher_free(matcher); }
};
using RustMatcher = std::unique_ptr<VtMatcher, VtMatcherDelete>;

inline const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// Copies and frees what the other side allocated.
std::string take(VtBytes bytes);
std::vector<uint32_t> take(VtIds ids);

// The error of a failed call; `kind` is used where the input is to blame.
Error rust_error(VtStatus status, VtBytes error, ErrorKind kind, std::string_view where);

// Texts laid end to end, as VtTexts wants them.
class PackedTexts {
 public:
  void reserve(size_t count, size_t bytes);
  void add(std::string_view text);
  VtTexts view() const { return {bytes_of(bytes_), bytes_.size(), ends_.data(), ends_.size()}; }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t index) const;

  PackedTexts() = default;
  PackedTexts(std::string bytes, std::vector<uint32_t> ends) : bytes_(std::move(bytes)), ends_(std::move(ends)) {}

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

}  // namespace vedette::text
