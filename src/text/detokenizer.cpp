#include "text/detokenizer.h"

#include "base/utf8.h"

namespace vedette::text {

std::string Detokenizer::push(int32_t id) {
  std::string bytes = tokenizer_->token_bytes(id, special_);
  if (bytes.empty()) return {};
  if (at_start_) {
    at_start_ = false;
    bytes = tokenizer_->first_token_bytes(id, special_);
  }
  pending_ += bytes;
  const size_t complete = complete_utf8_prefix(pending_);
  std::string text = repair_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string Detokenizer::finish() {
  std::string text = repair_utf8(pending_);
  pending_.clear();
  return text;
}

}  // namespace vedette::text
