#include "text/grammar.h"

#include "base/error.h"
#include "text/gbnf.h"
#include "text/rust_bridge.h"

namespace vedette::text {
namespace {

// Longer tokens than this do not fit the compiler's prefix tree, and are never allowed.
constexpr size_t kMaxTokenBytes = 1000;
// The byte that begins a special token in the compiler's vocabulary; no UTF-8 text holds it.
constexpr char kSpecialMark = '\xff';

class MatcherConstraint : public sampling::Constraint {
 public:
  explicit MatcherConstraint(RustMatcher matcher) : matcher_(std::move(matcher)) {}

  Result<bool> allowed(std::span<uint32_t> words) override {
    VtBytes error;
    const VtStatus status = vt_matcher_mask(matcher_.get(), words.data(), words.size(), &error);
    if (status != kVtOk) return rust_error(status, error, ErrorKind::kInvalidRequest, "");
    return true;
  }

  Status accept(int32_t token) override {
    VtBytes error;
    const VtStatus status = vt_matcher_consume(matcher_.get(), static_cast<uint32_t>(token), &error);
    if (status != kVtOk) return rust_error(status, error, ErrorKind::kInternal, "");
    return ok_status();
  }

  bool complete() const override { return vt_matcher_stopped(matcher_.get()) != 0; }

  std::unique_ptr<Constraint> clone() const override {
    VtMatcher* copy = nullptr;
    VtBytes error;
    if (vt_matcher_clone(matcher_.get(), &copy, &error) != kVtOk) {
      vt_bytes_free(error);
      copy = nullptr;
    }
    return std::make_unique<MatcherConstraint>(RustMatcher(copy));
  }

 private:
  RustMatcher matcher_;
};

const char* name_of(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "json";
    case GrammarKind::kRegex:
      return "regex";
    case GrammarKind::kLark:
    case GrammarKind::kGbnf:
      break;
  }
  return "lark";
}

}  // namespace

struct GrammarCompiler::Impl {
  RustGrammars grammars;
};

GrammarCompiler::GrammarCompiler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrammarCompiler::~GrammarCompiler() = default;

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::create(const Tokenizer& tokenizer,
                                                                 std::span<const int32_t> eos) {
  PackedTexts tokens;
  tokens.reserve(static_cast<size_t>(tokenizer.size()), static_cast<size_t>(tokenizer.size()) * 8);
  for (int64_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    std::string bytes(tokenizer.token_bytes(id, true));
    if (tokenizer.is_special(id) && !bytes.empty()) bytes.insert(bytes.begin(), kSpecialMark);
    if (bytes.size() > kMaxTokenBytes) bytes.clear();
    tokens.add(bytes);
  }
  const VtTexts view = tokens.view();
  const std::vector<uint32_t> ends(eos.begin(), eos.end());
  VtGrammars* grammars = nullptr;
  VtBytes error;
  const VtStatus status =
      vt_grammars_create({view.bytes, view.size, view.ends, view.count}, ends.data(), ends.size(), &grammars, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kUnsupported, "grammars over this vocabulary");
  auto impl = std::make_unique<Impl>();
  impl->grammars.reset(grammars);
  return std::unique_ptr<GrammarCompiler>(new GrammarCompiler(std::move(impl)));
}

Result<std::unique_ptr<sampling::Constraint>> GrammarCompiler::compile(const Grammar& grammar) const {
  std::string translated;
  if (grammar.kind == GrammarKind::kGbnf) {
    VEDETTE_ASSIGN_OR_RETURN(translated, lark_from_gbnf(grammar.text));
  }
  const std::string_view text = grammar.kind == GrammarKind::kGbnf ? translated : grammar.text;
  const std::string_view kind = name_of(grammar.kind);
  VtMatcher* matcher = nullptr;
  VtBytes error;
  const VtStatus status = vt_grammars_compile(impl_->grammars.get(), bytes_of(kind), kind.size(), bytes_of(text),
                                              text.size(), &matcher, &error);
  if (status != kVtOk) return rust_error(status, error, ErrorKind::kInvalidRequest, "");
  return std::unique_ptr<sampling::Constraint>(std::make_unique<MatcherConstraint>(RustMatcher(matcher)));
}

Result<std::vector<int32_t>> mark_ids(const Tokenizer& tokenizer, std::string_view mark) {
  if (const auto id = tokenizer.id_of(mark)) return std::vector<int32_t>{*id};
  const EncodeOptions options{.add_special = false, .parse_special = true};
  VEDETTE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.encode(mark, options));
  if (!tokenizer.strips_leading_space()) return ids;
  // At the start of a text the vocabulary adds a space; after a line break it does not.
  VEDETTE_ASSIGN_OR_RETURN(const std::vector<int32_t> before, tokenizer.encode("\n", options));
  VEDETTE_ASSIGN_OR_RETURN(const std::vector<int32_t> after, tokenizer.encode("\n" + std::string(mark), options));
  if (after.size() <= before.size() || !std::equal(before.begin(), before.end(), after.begin())) return ids;
  return std::vector<int32_t>(after.begin() + static_cast<std::ptrdiff_t>(before.size()), after.end());
}

}  // namespace vedette::text
