#include "text/detokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace vedette::text {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool special, std::vector<int32_t> visible)
    : tokenizer_(&tokenizer), special_(special), visible_(std::move(visible)) {
  std::sort(visible_.begin(), visible_.end());
}

std::string Detokenizer::push(int32_t id) {
  const bool special = special_ || std::binary_search(visible_.begin(), visible_.end(), id);
  std::string bytes = tokenizer_->token_bytes(id, special);
  if (bytes.empty()) return {};
  if (at_start_) {
    at_start_ = false;
    bytes = tokenizer_->first_token_bytes(id, special);
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
