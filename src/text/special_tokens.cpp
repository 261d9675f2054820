#include "text/special_tokens.h"

namespace vedette::text {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

void SpecialTokens::add(std::string_view text, SpecialToken token) {
  if (text.empty()) return;
  uint32_t node = 0;
  for (const char c : text) {
    uint32_t next = step(node, c);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
      if (node == 0)
        first_[static_cast<uint8_t>(c)] = next;
      else
        nodes_[node].next.emplace_back(c, next);
    }
    node = next;
  }
  nodes_[node].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

uint32_t SpecialTokens::step(uint32_t node, char c) const {
  if (node == 0) return first_[static_cast<uint8_t>(c)];
  for (const auto& [byte, next] : nodes_[node].next)
    if (byte == c) return next;
  return 0;
}

SpecialTokens::Match SpecialTokens::longest_prefix(std::string_view text) const {
  Match best;
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = step(node, text[i]);
    if (node == 0) break;
    if (nodes_[node].token >= 0) best = {i + 1, &tokens_[static_cast<size_t>(nodes_[node].token)]};
  }
  return best;
}

std::string_view SpecialTokens::trim_right(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

size_t SpecialTokens::leading_space(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && is_space(text[n])) ++n;
  return n;
}

}  // namespace vedette::text
