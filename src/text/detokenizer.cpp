#include "text/detokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace vedette::text {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool special, std::vector<int32_t> visible)
    : tokenizer_(&tokenizer), special_(special), visible_(std::move(visible)) {
  std::sort(visible_.begin(), visible_.end());
}

std::string_view Detokenizer::push(int32_t id) {
  const bool special = special_ || std::binary_search(visible_.begin(), visible_.end(), id);
  const std::string_view bytes = tokenizer_->token_bytes(id, special);
  if (bytes.empty()) return {};
  if (at_start_)
    pending_ += tokenizer_->first_token_bytes(id, special);
  else
    pending_ += bytes;
  at_start_ = false;
  const size_t complete = complete_utf8_prefix(pending_);
  text_.clear();
  append_repaired(std::string_view(pending_).substr(0, complete), text_);
  pending_.erase(0, complete);
  return text_;
}

std::string_view Detokenizer::finish() {
  text_.clear();
  append_repaired(pending_, text_);
  pending_.clear();
  return text_;
}

}  // namespace vedette::text
