#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/grammar.h"

namespace vedette::text {
namespace {

using sampling::Constraint;

bool has(std::span<const uint32_t> words, int32_t token) {
  const auto at = static_cast<size_t>(token) / 32;
  return token >= 0 && at < words.size() && (words[at] >> (token % 32) & 1) != 0;
}

void set(std::span<uint32_t> words, int32_t token) {
  const auto at = static_cast<size_t>(token) / 32;
  if (token >= 0 && at < words.size()) words[at] |= uint32_t{1} << (token % 32);
}

void clear(std::span<uint32_t> words, int32_t token) {
  const auto at = static_cast<size_t>(token) / 32;
  if (token >= 0 && at < words.size()) words[at] &= ~(uint32_t{1} << (token % 32));
}

// Finds a sequence in a stream of elements, by the longest prefix that the stream ends in (Knuth, Morris, Pratt).
template <typename Sequence>
class Finder {
 public:
  explicit Finder(Sequence mark) : mark_(std::move(mark)), fallback_(mark_.size() + 1, 0) {
    for (size_t i = 1, k = 0; i < mark_.size(); ++i) {
      while (k > 0 && mark_[i] != mark_[k]) k = fallback_[k];
      if (mark_[i] == mark_[k]) ++k;
      fallback_[i + 1] = k;
    }
  }

  // True where the mark ends with this element.
  bool add(typename Sequence::value_type element) {
    if (mark_.empty()) return false;
    if (matched_ == mark_.size()) matched_ = fallback_[matched_];
    while (matched_ > 0 && mark_[matched_] != element) matched_ = fallback_[matched_];
    if (mark_[matched_] == element) ++matched_;
    return matched_ == mark_.size();
  }
  size_t matched() const { return matched_; }

 private:
  Sequence mark_;
  std::vector<size_t> fallback_;
  size_t matched_ = 0;
};

enum class Stage : uint8_t { kStart, kReasoning, kAnswer };

class Gate : public Constraint {
 public:
  Gate(ReasoningGate gate, std::unique_ptr<Constraint> inner)
      : gate_(std::make_shared<const ReasoningGate>(std::move(gate))),
        stage_(gate_->starts_inside ? Stage::kReasoning : Stage::kStart),
        inner_(std::move(inner)),
        close_ids_(gate_->close),
        close_text_(gate_->tokenizer != nullptr ? gate_->close_text : std::string()) {}

  Gate(const Gate& other)
      : gate_(other.gate_),
        stage_(other.stage_),
        inner_(copy(other.inner_)),
        aside_(copy(other.aside_)),
        opened_(other.opened_),
        inside_(other.inside_),
        told_(other.told_),
        forced_(other.forced_),
        mask_words_(other.mask_words_),
        close_ids_(other.close_ids_),
        close_text_(other.close_text_) {}

  Result<bool> allowed(std::span<uint32_t> words) override {
    mask_words_ = words.size();
    switch (stage_) {
      case Stage::kReasoning:
        return allowed_inside(words);
      case Stage::kStart:
        return allowed_at_start(words);
      case Stage::kAnswer:
        break;
    }
    return inner_ == nullptr ? Result<bool>(false) : inner_->allowed(words);
  }

  Status accept(int32_t token) override {
    switch (stage_) {
      case Stage::kReasoning:
        return accept_inside(token);
      case Stage::kStart:
        return accept_at_start(token);
      case Stage::kAnswer:
        break;
    }
    return inner_ == nullptr ? ok_status() : inner_->accept(token);
  }

  bool complete() const override { return stage_ == Stage::kAnswer && inner_ != nullptr && inner_->complete(); }
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<Gate>(*this); }

 private:
  static std::unique_ptr<Constraint> copy(const std::unique_ptr<Constraint>& inner) {
    return inner == nullptr ? nullptr : inner->clone();
  }

  bool is_forced() const {
    return (told_ || (gate_->budget >= 0 && inside_ >= gate_->budget)) && !gate_->close.empty();
  }
  // Where the model is half-way through the mark when the budget ends, only the rest is forced.
  size_t next_of_close() const { return forced_ > 0 ? forced_ : close_ids_.matched() % gate_->close.size(); }

  Result<bool> allowed_inside(std::span<uint32_t> words) {
    // Looked at here alone, so that the token accepted next is judged as it was drawn.
    told_ = told_ || (gate_->ended && gate_->ended->load());
    if (is_forced()) {
      std::fill(words.begin(), words.end(), 0);
      set(words, gate_->close[next_of_close()]);
      return true;
    }
    if (inner_ == nullptr || gate_->end.empty()) return false;
    std::fill(words.begin(), words.end(), ~uint32_t{0});
    for (const int32_t token : gate_->end) clear(words, token);
    return true;
  }

  Status accept_inside(int32_t token) {
    if (is_forced()) {
      const size_t next = next_of_close();
      if (token != gate_->close[next])
        return internal_error("", "token {} drawn where {} closes the reasoning", token, gate_->close[next]);
      forced_ = next + 1;
      if (forced_ == gate_->close.size()) stage_ = Stage::kAnswer;
      return ok_status();
    }
    ++inside_;
    bool closed = close_ids_.add(token);
    if (gate_->tokenizer != nullptr)
      for (const char byte : gate_->tokenizer->token_bytes(token, true)) closed |= close_text_.add(byte);
    if (closed) stage_ = Stage::kAnswer;
    return ok_status();
  }

  // As long as what was drawn is a beginning of the opening mark, the answer may have begun instead: `inner_` then has
  // not moved, and `aside_` has accepted the tokens, unless it could not.
  Result<bool> allowed_at_start(std::span<uint32_t> words) {
    if (opened_ > 0 && aside_ == nullptr && inner_ != nullptr) {
      std::fill(words.begin(), words.end(), 0);
    } else {
      Constraint* answer = opened_ > 0 ? aside_.get() : inner_.get();
      if (answer == nullptr) return false;
      VEDETTE_ASSIGN_OR_RETURN(const bool limited, answer->allowed(words));
      if (!limited) return false;
    }
    set(words, gate_->open[opened_]);
    return true;
  }

  Status accept_at_start(int32_t token) {
    if (token == gate_->open[opened_]) return open_further(token);
    if (inner_ != nullptr && opened_ > 0) {
      if (aside_ == nullptr)
        return internal_error("", "token {} drawn inside the mark that opens the reasoning", token);
      inner_ = std::move(aside_);
    }
    stage_ = Stage::kAnswer;
    return inner_ == nullptr ? ok_status() : inner_->accept(token);
  }

  Status open_further(int32_t token) {
    const bool first = opened_++ == 0;
    if (opened_ == gate_->open.size()) {
      aside_ = nullptr;
      stage_ = Stage::kReasoning;
      return ok_status();
    }
    if (inner_ == nullptr) return ok_status();
    if (first) aside_ = inner_->clone();
    if (aside_ == nullptr) return ok_status();
    std::vector<uint32_t> words(std::max(mask_words_, static_cast<size_t>(token) / 32 + 1));
    VEDETTE_ASSIGN_OR_RETURN(const bool limited, aside_->allowed(words));
    if (limited && !has(words, token)) {
      aside_ = nullptr;
      return ok_status();
    }
    return aside_->accept(token);
  }

  std::shared_ptr<const ReasoningGate> gate_;
  Stage stage_;
  std::unique_ptr<Constraint> inner_;
  std::unique_ptr<Constraint> aside_;
  size_t opened_ = 0;   // tokens of the opening mark drawn
  int64_t inside_ = 0;  // tokens drawn in the block
  bool told_ = false;   // to end it
  size_t forced_ = 0;   // tokens of the closing mark drawn because the budget was spent
  size_t mask_words_ = 0;
  Finder<std::vector<int32_t>> close_ids_;
  Finder<std::string> close_text_;
};

}  // namespace

std::unique_ptr<Constraint> gate_reasoning(ReasoningGate gate, std::unique_ptr<Constraint> inner) {
  const bool never = gate.close.empty() || (!gate.starts_inside && (!gate.may_open || gate.open.empty()));
  if (never || (inner == nullptr && gate.budget < 0 && gate.ended == nullptr)) return inner;
  return std::make_unique<Gate>(std::move(gate), std::move(inner));
}

}  // namespace vedette::text
