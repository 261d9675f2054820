// Finds special tokens written out in a text: leftmost first, the longest of those that start together.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace vedette::text {

struct SpecialToken {
  int32_t id = -1;
  bool strip_left = false;   // white space before it belongs to it
  bool strip_right = false;  // white space after it belongs to it
};

// A byte trie. Immutable once filled; any thread.
class SpecialTokens {
 public:
  void add(std::string_view text, SpecialToken token);
  bool empty() const { return tokens_.empty(); }

  struct Match {
    size_t length = 0;  // 0: none
    const SpecialToken* token = nullptr;
  };
  // The longest entry that `text` starts with.
  Match longest_prefix(std::string_view text) const;

  // Calls on_text(part, follows) for each non-empty stretch between special tokens, where follows says whether a
  // special token (or the start of the text) stands before it, and on_token(id) for each special token, in order.
  template <typename OnText, typename OnToken>
  void split(std::string_view text, OnText&& on_text, OnToken&& on_token) const;

 private:
  struct Node {
    std::vector<std::pair<char, uint32_t>> next;
    int32_t token = -1;  // index into tokens_
  };
  uint32_t step(uint32_t node, char c) const;  // 0: none

  static std::string_view trim_right(std::string_view text);
  static size_t leading_space(std::string_view text);

  std::array<uint32_t, 256> first_{};  // children of the root, 0 none
  std::vector<Node> nodes_{1};
  std::vector<SpecialToken> tokens_;
};

template <typename OnText, typename OnToken>
void SpecialTokens::split(std::string_view text, OnText&& on_text, OnToken&& on_token) const {
  size_t start = 0, at = empty() ? text.size() : 0;
  while (at < text.size()) {
    const Match match = longest_prefix(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    std::string_view before = text.substr(start, at - start);
    if (match.token->strip_left) before = trim_right(before);
    if (!before.empty()) on_text(before);
    on_token(match.token->id);
    at += match.length;
    if (match.token->strip_right) at += leading_space(text.substr(at));
    start = at;
  }
  if (start < text.size()) on_text(text.substr(start));
}

}  // namespace vedette::text
