#include "text/sentencepiece.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <queue>
#include <string>

namespace vedette::text {
namespace {

size_t character_length(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

std::string replace_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char c : text)
    if (c == ' ')
      out += kSpaceMark;
    else
      out += c;
  return out;
}

struct Symbol {
  uint32_t start, length;  // bytes; length 0: merged into another
  int32_t prev, next;      // -1 at the ends
  int32_t frozen;          // id of a user-defined piece, -1 otherwise
};

struct Pair {
  float score;
  int32_t left, right;
  uint32_t length;  // of both when the pair was seen; differs once either was merged

  // Whether this pair comes after `other`.
  bool operator<(const Pair& other) const { return score < other.score || (score == other.score && left > other.left); }
};

}  // namespace

struct SentencePiece::Work {
  std::string_view text;
  std::vector<Symbol> symbols;
  std::priority_queue<Pair> pairs;
  // How an unused piece was made: it is given back as its two parts.
  std::map<std::string_view, std::pair<std::string_view, std::string_view>> unused;

  std::string_view of(int32_t symbol) const {
    const Symbol& s = symbols[static_cast<size_t>(symbol)];
    return text.substr(s.start, s.length);
  }
};

SentencePiece::SentencePiece(const PackedTexts& texts, const TokenIndex& index, const std::vector<PieceType>& types,
                             const std::vector<float>& scores, Options options)
    : index_(&index), types_(&types), scores_(&scores), options_(options) {
  for (size_t id = 0; id < texts.size(); ++id) {
    if (types[id] == PieceType::kUnused) has_unused_ = true;
    if (types[id] != PieceType::kUserDefined) continue;
    // Files hold the spaces of such pieces as spaces or as marks.
    const std::string text = options.escape_spaces ? replace_spaces(texts[id]) : std::string(texts[id]);
    user_defined_.add(text, {static_cast<int32_t>(id)});
  }
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t id = index.find(fmt::format("<0x{:02X}>", byte));
    byte_ids_[static_cast<size_t>(byte)] = id;
    byte_fallback_ = byte_fallback_ && id >= 0;
  }
}

std::string SentencePiece::normalize(std::string_view text, bool space_before) const {
  std::string squeezed;
  if (options_.remove_extra_spaces) {
    for (const char c : text)
      if (c != ' ' || (!squeezed.empty() && squeezed.back() != ' ')) squeezed += c;
    if (!squeezed.empty() && squeezed.back() == ' ') squeezed.pop_back();
    text = squeezed;
  }
  if (text.empty()) return {};
  const std::string spaced = space_before ? " " + std::string(text) : std::string(text);
  return options_.escape_spaces ? replace_spaces(spaced) : spaced;
}

int32_t SentencePiece::piece(std::string_view text) const {
  const int32_t id = index_->find(text);
  if (id < 0) return -1;
  const PieceType type = (*types_)[static_cast<size_t>(id)];
  return type == PieceType::kNormal || type == PieceType::kUnused ? id : -1;
}

void SentencePiece::cut(Work& work) const {
  const std::string_view text = work.text;
  work.symbols.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    Symbol symbol{static_cast<uint32_t>(at), 0, static_cast<int32_t>(work.symbols.size()) - 1,
                  static_cast<int32_t>(work.symbols.size()) + 1, -1};
    const SpecialTokens::Match match = user_defined_.longest_prefix(text.substr(at));
    if (match.length > 0) {
      symbol.frozen = match.token->id;
      symbol.length = static_cast<uint32_t>(match.length);
    } else {
      symbol.length = static_cast<uint32_t>(std::min(character_length(text[at]), text.size() - at));
    }
    at += symbol.length;
    work.symbols.push_back(symbol);
  }
  if (!work.symbols.empty()) work.symbols.back().next = -1;
}

void SentencePiece::add_pair(Work& work, int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return;
  const Symbol& a = work.symbols[static_cast<size_t>(left)];
  const Symbol& b = work.symbols[static_cast<size_t>(right)];
  if (a.frozen >= 0 || b.frozen >= 0) return;
  const std::string_view joined = work.text.substr(a.start, a.length + b.length);
  const int32_t id = piece(joined);
  if (id < 0) return;
  work.pairs.push({(*scores_)[static_cast<size_t>(id)], left, right, static_cast<uint32_t>(joined.size())});
  if (has_unused_ && (*types_)[static_cast<size_t>(id)] == PieceType::kUnused)
    work.unused[joined] = {work.of(left), work.of(right)};
}

void SentencePiece::merge(Work& work) const {
  for (size_t i = 1; i < work.symbols.size(); ++i) add_pair(work, static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  while (!work.pairs.empty()) {
    const Pair pair = work.pairs.top();
    work.pairs.pop();
    Symbol& left = work.symbols[static_cast<size_t>(pair.left)];
    Symbol& right = work.symbols[static_cast<size_t>(pair.right)];
    if (left.length == 0 || right.length == 0 || left.length + right.length != pair.length) continue;
    left.length = pair.length;
    right.length = 0;
    left.next = right.next;
    if (right.next >= 0) work.symbols[static_cast<size_t>(right.next)].prev = pair.left;
    add_pair(work, left.prev, pair.left);
    add_pair(work, pair.left, left.next);
  }
}

void SentencePiece::emit_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  if (byte_fallback_) {
    for (const char c : text) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
  } else if (ids.empty() || ids.back() != options_.unknown) {
    ids.push_back(options_.unknown);
  }
}

void SentencePiece::emit_unmerged(const Work& work, std::string_view text, std::vector<int32_t>& ids) const {
  if (!has_unused_) {
    const int32_t id = piece(text);
    if (id >= 0)
      ids.push_back(id);
    else
      emit_unknown(text, ids);
    return;
  }
  // Depth-first over the parts of unused pieces; each part is shorter than its whole.
  std::vector<std::string_view> todo{text};
  while (!todo.empty()) {
    const std::string_view part = todo.back();
    todo.pop_back();
    const int32_t id = piece(part);
    if (id < 0) {
      emit_unknown(part, ids);
      continue;
    }
    const auto made =
        (*types_)[static_cast<size_t>(id)] == PieceType::kUnused ? work.unused.find(part) : work.unused.end();
    if (made == work.unused.end()) {
      ids.push_back(id);
    } else {
      todo.push_back(made->second.second);
      todo.push_back(made->second.first);
    }
  }
}

void SentencePiece::emit(const Work& work, int32_t symbol, std::vector<int32_t>& ids) const {
  const Symbol& s = work.symbols[static_cast<size_t>(symbol)];
  if (s.frozen >= 0)
    ids.push_back(s.frozen);
  else
    emit_unmerged(work, work.of(symbol), ids);
}

void SentencePiece::encode(std::string_view text, bool space_before, std::vector<int32_t>& ids) const {
  const std::string normalized = normalize(text, space_before);
  if (normalized.empty()) return;
  Work work;
  work.text = normalized;
  cut(work);
  merge(work);
  for (int32_t symbol = 0; symbol >= 0; symbol = work.symbols[static_cast<size_t>(symbol)].next)
    emit(work, symbol, ids);
}

}  // namespace vedette::text
