// What a link that learns from the draws must remember: a number for each candidate it kept.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sampling/numbers.h"

namespace vedette::sampling {

// Owned by a link and copied with it. The token drawn becomes known when the history is next seen, one token longer.
class Feedback {
 public:
  explicit Feedback(size_t vocab_size) { kept_.reserve(vocab_size); }
  Feedback(const Feedback& other) : length_(other.length_) {
    kept_.reserve(other.kept_.capacity());
    kept_ = other.kept_;
  }
  Feedback& operator=(const Feedback&) = delete;

  // The number remembered for the token that followed. None where nothing followed yet, or a token that was not kept
  // (one that was forced); given once.
  std::optional<float> chosen(const History& history) {
    if (!waiting_for(history)) return std::nullopt;
    const int32_t token = history.tokens[length_];
    length_ = kNothing;
    const auto found = std::lower_bound(kept_.begin(), kept_.end(), token,
                                        [](const Candidate& candidate, int32_t id) { return candidate.id < id; });
    if (found == kept_.end() || found->id != token) return std::nullopt;
    return found->logit;
  }

  template <typename Value>
  void remember(const History& history, const std::vector<Candidate>& candidates, Value value) {
    length_ = history.tokens.size();
    kept_.clear();
    for (const Candidate& candidate : candidates)
      if (candidate.logit > kMinusInfinity) kept_.push_back({candidate.id, value(candidate.logit)});
  }

 private:
  static constexpr size_t kNothing = ~size_t{0};

  bool waiting_for(const History& history) const { return length_ != kNothing && history.tokens.size() > length_; }

  size_t length_ = kNothing;     // of the history before the draw
  std::vector<Candidate> kept_;  // in ascending id order; the number in place of the logit
};

}  // namespace vedette::sampling
