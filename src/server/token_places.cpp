#include "server/token_places.h"

#include <utility>

namespace vedette::server {

void TokenPlaces::add(const std::vector<engine::TokenLogprobs>& drawn) {
  for (const engine::TokenLogprobs& token : drawn) {
    const size_t begin = bytes_.size();
    bytes_ += tokenizer_->token_bytes(token.chosen.id, true);
    waiting_.push_back({token, begin, bytes_.size()});
  }
}

std::vector<engine::TokenLogprobs> TokenPlaces::take(std::string_view content) {
  // Content goes on where it stopped, or comes after marks; what is held back stands behind it.
  size_t begin = bytes_.starts_with(content) ? 0 : bytes_.rfind(content);
  size_t end = begin + content.size();
  // Bytes that are no UTF-8 read otherwise in the text.
  if (begin == std::string::npos) {
    begin = 0;
    end = bytes_.size();
  }
  std::vector<engine::TokenLogprobs> out;
  size_t used = 0;
  for (; used < waiting_.size() && waiting_[used].begin < end; ++used)
    if (waiting_[used].end > begin) out.push_back(std::move(waiting_[used].token));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(used));
  for (Waiting& one : waiting_) {
    one.begin -= end;
    one.end -= end;
  }
  bytes_.erase(0, end);
  return out;
}

void TokenPlaces::drop() {
  bytes_.clear();
  waiting_.clear();
}

}  // namespace vedette::server
