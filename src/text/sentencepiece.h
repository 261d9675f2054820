// SentencePiece byte-pair encoding by scores (Kudo and Richardson 2018, model type BPE).
//
// The adjacent pair whose joined text is the piece of the highest score is merged first, the leftmost of equals, until
// no pair is a piece. User-defined pieces are cut out beforehand and never merged or split. A character that is no
// piece becomes its bytes (<0xNN>) where the vocabulary has them, else the unknown token, one for a run.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/special_tokens.h"
#include "text/token_index.h"
#include "text/vocabulary.h"

namespace vedette::text {

enum class PieceType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// Immutable; any thread. Borrows index and types.
class SentencePiece {
 public:
  struct Options {
    bool escape_spaces = true;         // a space is written as the space mark
    bool remove_extra_spaces = false;  // runs of spaces become one, those at the ends none
    int32_t unknown = 0;
  };
  SentencePiece(const PackedTexts& texts, const TokenIndex& index, const std::vector<PieceType>& types,
                const std::vector<float>& scores, Options options);

  // Appends the ids of valid UTF-8 text; space_before: as if a space stood before it.
  void encode(std::string_view text, bool space_before, std::vector<int32_t>& ids) const;

 private:
  struct Work;
  int32_t piece(std::string_view text) const;  // id of a mergeable piece, -1 if none
  void cut(Work& work) const;
  void add_pair(Work& work, int32_t left, int32_t right) const;
  void merge(Work& work) const;
  void emit(const Work& work, int32_t symbol, std::vector<int32_t>& ids) const;
  void emit_unmerged(const Work& work, std::string_view text, std::vector<int32_t>& ids) const;
  void emit_unknown(std::string_view text, std::vector<int32_t>& ids) const;
  std::string normalize(std::string_view text, bool space_before) const;

  const TokenIndex* index_;
  const std::vector<PieceType>* types_;
  const std::vector<float>* scores_;
  Options options_;
  SpecialTokens user_defined_;
  std::array<int32_t, 256> byte_ids_{};
  bool byte_fallback_ = true;
  bool has_unused_ = false;
};

}  // namespace vedette::text
