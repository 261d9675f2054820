// Tokenizers from a vocabulary embedded in a GGUF file: "gpt2" (byte-pair merges), "llama" (SentencePiece), "bert".
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "text/pre_tokenizers.h"
#include "text/sentencepiece.h"
#include "text/special_tokens.h"
#include "text/vocabulary.h"

namespace vedette::text {
namespace {

using weights::GgufVocabulary;

// Tokens that end a turn: converters sometimes leave them typed as normal text.
constexpr std::string_view kTurnEnds[] = {"<|eot_id|>",    "<|im_end|>",        "<|end|>",         "<end_of_turn>",
                                          "<|endoftext|>", "<|eom_id|>",        "<|end_of_text|>", "<EOT>",
                                          "[EOT]",         "<end_of_utterance>"};

// What all three models share: ids around the text, and special tokens within it.
struct Frame {
  std::optional<int32_t> before, after;
  SpecialTokens always;  // user-defined: matched whatever the options
  SpecialTokens all;     // and control and unknown tokens
};

void append(std::vector<int32_t>& ids, const std::vector<uint32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

Result<std::vector<uint32_t>> encode_part(const VtTokenizer* tokenizer, std::string_view text) {
  VtIds ids;
  VtBytes error;
  const VtStatus status = vt_tokenizer_encode(tokenizer, bytes_of(text), text.size(), 0, 0, &ids, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kCorruptFile, "GGUF vocabulary");
  return take(ids);
}

// Byte-pair and word-piece vocabularies: stretches of text go to the library, special tokens are ours.
class LibraryEncoder : public Encoder {
 public:
  LibraryEncoder(RustTokenizer tokenizer, Frame frame, bool escape_spaces)
      : tokenizer_(std::move(tokenizer)), frame_(std::move(frame)), escape_spaces_(escape_spaces) {}

  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<int32_t> ids;
    std::optional<Error> failed;
    if (options.add_special && frame_.before) ids.push_back(*frame_.before);
    const auto on_text = [&](std::string_view part) {
      if (failed) return;
      auto more = escape_spaces_ ? encode_part(tokenizer_.get(), replace_all(part, " ", kSpaceMark))
                                 : encode_part(tokenizer_.get(), part);
      if (more.ok())
        append(ids, *more);
      else
        failed = std::move(more).error();
    };
    (options.parse_special ? frame_.all : frame_.always).split(text, on_text, [&](int32_t id) { ids.push_back(id); });
    if (failed) return std::move(*failed);
    if (options.add_special && frame_.after) ids.push_back(*frame_.after);
    return ids;
  }

 private:
  RustTokenizer tokenizer_;
  Frame frame_;
  bool escape_spaces_;
};

// Control tokens, and tokens added beside the model, are cut out of the text here.
class SentencePieceEncoder : public Encoder {
 public:
  SentencePieceEncoder(const Vocabulary& vocabulary, std::vector<PieceType> types, std::vector<float> scores,
                       SentencePiece::Options options, Frame frame, bool space_prefix)
      : types_(std::move(types)),
        scores_(std::move(scores)),
        model_(vocabulary.texts, vocabulary.index, types_, scores_, options),
        frame_(std::move(frame)),
        space_prefix_(space_prefix) {}

  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size() / 3 + 2);
    if (options.add_special && frame_.before) ids.push_back(*frame_.before);
    const auto on_text = [&](std::string_view part) { model_.encode(part, space_prefix_, ids); };
    (options.parse_special ? frame_.all : frame_.always).split(text, on_text, [&](int32_t id) { ids.push_back(id); });
    if (options.add_special && frame_.after) ids.push_back(*frame_.after);
    return ids;
  }

 private:
  std::vector<PieceType> types_;
  std::vector<float> scores_;
  SentencePiece model_;
  Frame frame_;
  bool space_prefix_;
};

// ---- Checks and tables --------------------------------------------------------------------------------------------

Status check(const GgufVocabulary& source) {
  const size_t size = source.tokens.size();
  if (size == 0) return corrupt_file("tokenizer.ggml.tokens", "GGUF vocabulary: expected tokens, found none");
  for (const auto& [name, count] : {std::pair<const char*, size_t>{"scores", source.scores.size()},
                                    std::pair<const char*, size_t>{"token_type", source.types.size()}})
    if (count != 0 && count != size)
      return corrupt_file(fmt::format("tokenizer.ggml.{}", name),
                          "GGUF vocabulary: {} entries of tokenizer.ggml.{} for {} tokens", count, name, size);
  for (size_t id = 0; id < size; ++id)
    if (!is_valid_utf8(source.tokens[id]))
      return corrupt_file("tokenizer.ggml.tokens", "GGUF vocabulary: token {} is not valid UTF-8", id);
  const std::pair<const char*, std::optional<int32_t>> named[] = {
      {"bos", source.bos},         {"eos", source.eos},         {"eot", source.eot},
      {"eom", source.eom},         {"unknown", source.unknown}, {"seperator", source.separator},
      {"padding", source.padding}, {"mask", source.mask},       {"cls", source.cls}};
  for (const auto& [name, id] : named)
    if (id && (*id < 0 || static_cast<size_t>(*id) >= size))
      return corrupt_file(fmt::format("tokenizer.ggml.{}_token_id", name),
                          "GGUF vocabulary: tokenizer.ggml.{}_token_id is {}, the vocabulary has {} tokens", name, *id,
                          size);
  return ok_status();
}

std::vector<PieceType> read_types(const GgufVocabulary& source) {
  std::vector<PieceType> types(source.tokens.size(), PieceType::kNormal);
  for (size_t id = 0; id < source.types.size(); ++id)
    if (source.types[id] >= 1 && source.types[id] <= 6) types[id] = static_cast<PieceType>(source.types[id]);
  const auto is_control = [&](std::optional<int32_t> id) {
    if (id && types[static_cast<size_t>(*id)] == PieceType::kNormal)
      types[static_cast<size_t>(*id)] = PieceType::kControl;
  };
  for (const auto id : {source.eot, source.eom}) is_control(id);
  for (size_t id = 0; id < types.size(); ++id)
    if (types[id] == PieceType::kNormal && std::ranges::find(kTurnEnds, source.tokens[id]) != std::end(kTurnEnds))
      types[id] = PieceType::kControl;
  return types;
}

// Phi-3 vocabularies take the white space after their markers; the file format has no field for it.
bool strips_after(const GgufVocabulary& source, const TokenIndex& index, std::string_view text) {
  if (source.model != "llama" || index.find("<|placeholder1|>") < 0 || index.find("<|assistant|>") < 0) return false;
  return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

// inner_user_defined: user-defined pieces are cut out by the model itself.
Frame make_frame(const GgufVocabulary& source, const Vocabulary& vocabulary, const std::vector<PieceType>& types,
                 bool inner_user_defined) {
  Frame frame;
  for (size_t id = 0; id < types.size(); ++id) {
    const std::string_view text = vocabulary.texts[id];
    const bool control = types[id] == PieceType::kControl || types[id] == PieceType::kUnknown;
    const bool user_defined = types[id] == PieceType::kUserDefined && !inner_user_defined;
    if (!control && !user_defined) continue;
    const SpecialToken token{static_cast<int32_t>(id), false, strips_after(source, vocabulary.index, text)};
    frame.all.add(text, token);
    if (user_defined) frame.always.add(text, token);
  }
  return frame;
}

// Entries, index, special flags; pieces are the caller's.
Status fill_tables(const GgufVocabulary& source, const std::vector<PieceType>& types, Vocabulary& vocabulary) {
  size_t bytes = 0;
  for (const std::string& token : source.tokens) bytes += token.size();
  if (bytes > (size_t{1} << 31))
    return corrupt_file("tokenizer.ggml.tokens", "GGUF vocabulary: {} bytes of tokens, at most {} are read", bytes,
                        size_t{1} << 31);
  vocabulary.texts.reserve(source.tokens.size(), bytes);
  vocabulary.pieces.reserve(source.tokens.size(), bytes);
  for (const std::string& token : source.tokens) vocabulary.texts.add(token);
  vocabulary.index.build(vocabulary.texts);
  vocabulary.special.assign(types.size(), 0);
  for (size_t id = 0; id < types.size(); ++id) {
    vocabulary.special[id] = types[id] == PieceType::kControl || types[id] == PieceType::kUnknown ? 1 : 0;
    if (vocabulary.texts[id].empty()) continue;
    if (types[id] == PieceType::kNormal || types[id] == PieceType::kUnknown || types[id] == PieceType::kByte)
      vocabulary.plain_size = static_cast<int64_t>(id) + 1;
    if (const int32_t other = vocabulary.index.duplicate_of(static_cast<int32_t>(id)); other >= 0)
      return corrupt_file("tokenizer.ggml.tokens", "GGUF vocabulary: tokens {} and {} are both '{}'", other, id,
                          source.tokens[id]);
  }
  return ok_status();
}

// Fills frame.before and .after from the file's rules; `add_bos`, `add_eos` where the file does not say.
Status set_frame_ids(bool add_bos, bool add_eos, Vocabulary& vocabulary, Frame& frame) {
  const auto wanted = [&](bool add, std::optional<int32_t> id, const char* name) -> Result<std::optional<int32_t>> {
    if (!add) return std::optional<int32_t>();
    if (!id)
      return corrupt_file(fmt::format("tokenizer.ggml.{}_token_id", name),
                          "GGUF vocabulary: tokenizer.ggml.add_{}_token is true, but no {} token is named", name, name);
    return id;
  };
  VEDETTE_ASSIGN_OR_RETURN(frame.before, wanted(add_bos, vocabulary.bos, "bos"));
  VEDETTE_ASSIGN_OR_RETURN(frame.after, wanted(add_eos, vocabulary.eos, "eos"));
  return ok_status();
}

// `id` if the vocabulary is that large.
std::optional<int32_t> default_id(const GgufVocabulary& source, int32_t id) {
  return static_cast<size_t>(id) < source.tokens.size() ? std::optional(id) : std::nullopt;
}

// ---- The three models ---------------------------------------------------------------------------------------------

Result<RustTokenizer> load_byte_pairs(const GgufVocabulary& source, const PackedTexts& tokens,
                                      const PreTokenizer& rules) {
  PackedTexts merges;
  merges.reserve(source.merges.size(), source.merges.size() * 12);
  for (const std::string& merge : source.merges) merges.add(merge);
  std::vector<VtSplit> splits;
  for (const SplitStep& step : rules.steps) splits.push_back({step.kind, bytes_of(step.pattern), step.pattern.size()});
  const VtBpeRules bpe{splits.data(), splits.size(), rules.byte_level, rules.ignore_merges, rules.whole_newlines};
  VtTokenizer* raw = nullptr;
  VtBytes error;
  const VtStatus status = vt_tokenizer_from_bpe(tokens.view(), merges.view(), &bpe, &raw, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kCorruptFile, "GGUF vocabulary");
  return RustTokenizer(raw);
}

std::string byte_pair_piece(std::string_view entry, PieceType type, bool byte_level) {
  if (type != PieceType::kNormal && type != PieceType::kByte) return std::string(entry);
  if (byte_level) return byte_level_bytes(entry);
  const int byte = byte_fallback_value(entry);
  return byte >= 0 ? std::string(1, static_cast<char>(byte)) : replace_all(entry, kSpaceMark, " ");
}

Result<std::unique_ptr<Tokenizer::Impl>> create_byte_pairs(const GgufVocabulary& source) {
  const std::string kind = source.model == "gemma4" ? "gemma4" : source.pre;
  const PreTokenizer* rules = find_pre_tokenizer(kind);
  if (rules == nullptr)
    return unsupported("tokenizer.ggml.pre", "GGUF vocabulary: pre-tokenizer '{}' is not known; known are {}", kind,
                       pre_tokenizer_kinds());
  const std::vector<PieceType> types = read_types(source);
  auto impl = std::make_unique<Tokenizer::Impl>();
  Vocabulary& vocabulary = impl->vocabulary;
  VEDETTE_RETURN_IF_ERROR(fill_tables(source, types, vocabulary));
  for (size_t id = 0; id < types.size(); ++id)
    vocabulary.pieces.add(byte_pair_piece(vocabulary.texts[id], types[id], rules->byte_level));
  vocabulary.bos = source.bos ? source.bos : rules->default_bos ? default_id(source, 11) : std::nullopt;
  vocabulary.eos = source.eos ? source.eos : default_id(source, 11);
  Frame frame = make_frame(source, vocabulary, types, false);
  const bool add_bos = rules->always_bos || source.add_bos.value_or(rules->add_bos);
  VEDETTE_RETURN_IF_ERROR(set_frame_ids(add_bos, source.add_eos.value_or(false), vocabulary, frame));
  VEDETTE_ASSIGN_OR_RETURN(RustTokenizer tokenizer, load_byte_pairs(source, vocabulary.texts, *rules));
  impl->encoder = std::make_unique<LibraryEncoder>(std::move(tokenizer), std::move(frame), !rules->byte_level);
  return impl;
}

Result<std::unique_ptr<Tokenizer::Impl>> create_sentencepiece(const GgufVocabulary& source) {
  if (source.scores.empty())
    return corrupt_file("tokenizer.ggml.scores",
                        "GGUF vocabulary: a SentencePiece vocabulary needs scores, found none");
  std::vector<PieceType> types = read_types(source);
  auto impl = std::make_unique<Tokenizer::Impl>();
  Vocabulary& vocabulary = impl->vocabulary;
  VEDETTE_RETURN_IF_ERROR(fill_tables(source, types, vocabulary));
  const bool escape = source.escape_whitespaces.value_or(true);
  for (size_t id = 0; id < types.size(); ++id) {
    const std::string_view entry = vocabulary.texts[id];
    const int byte = types[id] == PieceType::kByte ? byte_fallback_value(entry) : -1;
    const bool special = vocabulary.special[id] != 0;
    vocabulary.pieces.add(byte >= 0            ? std::string(1, static_cast<char>(byte))
                          : escape && !special ? replace_all(entry, kSpaceMark, " ")
                                               : std::string(entry));
  }
  const bool space_prefix = source.add_space_prefix.value_or(true);
  if (space_prefix) vocabulary.leading_space = LeadingSpace::kStripped;
  vocabulary.bos = source.bos ? source.bos : default_id(source, 1);
  vocabulary.eos = source.eos ? source.eos : default_id(source, 2);
  // With a space prefix, user-defined pieces are tokens added beside the SentencePiece model: the text after one
  // begins anew. Without it (Gemma) they are the model's own.
  Frame frame = make_frame(source, vocabulary, types, !space_prefix);
  VEDETTE_RETURN_IF_ERROR(
      set_frame_ids(source.add_bos.value_or(true), source.add_eos.value_or(false), vocabulary, frame));
  const SentencePiece::Options options{.escape_spaces = escape,
                                       .remove_extra_spaces = source.remove_extra_whitespaces.value_or(false),
                                       .unknown = source.unknown.value_or(0)};
  impl->encoder = std::make_unique<SentencePieceEncoder>(vocabulary, std::move(types), source.scores, options,
                                                         std::move(frame), space_prefix);
  return impl;
}

// GGUF writes word beginnings with the space mark and continuations bare; BERT the other way round, with "##".
std::string bert_entry(std::string_view entry) {
  if (entry.starts_with(kSpaceMark)) return std::string(entry.substr(kSpaceMark.size()));
  if (entry.starts_with('[') && entry.ends_with(']')) return std::string(entry);
  return "##" + std::string(entry);
}

Result<std::unique_ptr<Tokenizer::Impl>> create_wordpiece(const GgufVocabulary& source) {
  std::vector<PieceType> types = read_types(source);
  const std::optional<int32_t> cls = source.cls ? source.cls : source.bos ? source.bos : default_id(source, 101);
  const std::optional<int32_t> separator = source.separator ? source.separator : default_id(source, 102);
  const std::optional<int32_t> unknown = source.unknown ? source.unknown : default_id(source, 100);
  if (!cls || !separator || !unknown)
    return corrupt_file("tokenizer.ggml",
                        "GGUF vocabulary: a WordPiece vocabulary needs [CLS], [SEP] and [UNK] tokens");
  for (const auto id : {cls, separator, unknown}) types[static_cast<size_t>(*id)] = PieceType::kControl;
  auto impl = std::make_unique<Tokenizer::Impl>();
  Vocabulary& vocabulary = impl->vocabulary;
  VEDETTE_RETURN_IF_ERROR(fill_tables(source, types, vocabulary));
  PackedTexts entries;
  for (size_t id = 0; id < types.size(); ++id) {
    entries.add(bert_entry(vocabulary.texts[id]));
    vocabulary.pieces.add(replace_all(vocabulary.texts[id], kSpaceMark, " "));
  }
  vocabulary.leading_space = LeadingSpace::kStripped;
  vocabulary.bos = cls;
  vocabulary.eos = source.eos;
  Frame frame = make_frame(source, vocabulary, types, false);
  frame.before = cls;
  frame.after = separator;
  const std::string_view unknown_entry = entries[static_cast<size_t>(*unknown)];
  VtTokenizer* raw = nullptr;
  VtBytes error;
  const VtStatus status =
      vt_tokenizer_from_wordpiece(entries.view(), bytes_of(unknown_entry), unknown_entry.size(), &raw, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kCorruptFile, "GGUF vocabulary");
  impl->encoder = std::make_unique<LibraryEncoder>(RustTokenizer(raw), std::move(frame), false);
  return impl;
}

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> create_from_gguf(const weights::GgufVocabulary& source) {
  VEDETTE_RETURN_IF_ERROR(check(source));
  if (source.model == "gpt2" || source.model == "gemma4") return create_byte_pairs(source);
  if (source.model == "llama") return create_sentencepiece(source);
  if (source.model == "bert") return create_wordpiece(source);
  return unsupported("tokenizer.ggml.model",
                     "GGUF vocabulary: tokenizer model '{}' is not supported; supported are bert, gemma4, gpt2, llama",
                     source.model);
}

}  // namespace vedette::text
