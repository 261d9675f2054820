// Constrained output: grammars compiled to sampling::Constraint by the llguidance crate.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sampling/constraint.h"
#include "text/tokenizer.h"

namespace vedette::text {

enum class GrammarKind : uint8_t { kJsonSchema, kRegex, kLark, kGbnf };
struct Grammar {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;  // kJsonSchema: the schema as JSON
};

// What stands between the start of a reply and the text a grammar governs.
struct ReasoningGate {
  bool starts_inside = false;  // the prompt has opened the block already
  bool may_open = false;       // the reply may open one itself, as its first tokens
  std::vector<int32_t> open;   // ids of the opening mark
  std::vector<int32_t> close;  // ids of the closing mark
  int64_t budget = -1;         // tokens of reasoning, then `close` is forced; -1: no limit
  std::vector<int32_t> end;    // end tokens: not drawn in the block where an answer is owed (`inner` is not null)
  // With both, the block also ends where tokens other than `close` spell its mark. What such a token writes after the
  // mark is no part of what `inner` governs. The tokenizer outlives the gate.
  const Tokenizer* tokenizer = nullptr;
  std::string close_text = {};
  // Set by whoever ends the reasoning of a reply under way: `close` is then forced as if the budget were spent.
  std::shared_ptr<const std::atomic<bool>> ended = {};
};

// Holds the token trie of one vocabulary. Immutable after creation; any thread.
class GrammarCompiler {
 public:
  static Result<std::unique_ptr<GrammarCompiler>> create(const Tokenizer& tokenizer, std::span<const int32_t> eos);
  ~GrammarCompiler();

  // Errors (kInvalidRequest): a grammar that does not parse (with position), or a schema keyword or `format` that
  // cannot be enforced, by name; the field is left to the caller. Bounded in time and memory. One matcher belongs to
  // one thread at a time. JSON is written compactly: between its tokens at most one space, or one line break and its
  // indentation; strings without \u escapes; properties in the schema's order. In kLark, schemas after %json count as
  // kJsonSchema does, and <name> and <[id]> are special tokens.
  Result<std::unique_ptr<sampling::Constraint>> compile(const Grammar& grammar) const;

 private:
  struct Impl;
  explicit GrammarCompiler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The ids a model writes for a mark such as "</think>": one token where the vocabulary has it, else its spelling inside
// a text.
Result<std::vector<int32_t>> mark_ids(const Tokenizer& tokenizer, std::string_view mark);

// Free text while reasoning lasts, then `inner` (may be null: free text). Null where nothing is left to constrain.
std::unique_ptr<sampling::Constraint> gate_reasoning(ReasoningGate gate, std::unique_ptr<sampling::Constraint> inner);

}  // namespace vedette::text
