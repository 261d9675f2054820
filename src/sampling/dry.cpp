// DRY, "don't repeat yourself": a token that would go on repeating what was said before is made less likely. Where the
// last n tokens also stand earlier, the token that followed there loses
//   multiplier * base^(n - allowed_length)   for n >= allowed_length, with the longest n of that token.
// A breaker ends the search: no repetition reaches across the last one in the window.
#include <algorithm>
#include <limits>
#include <numeric>

#include "sampling/links.h"
#include "sampling/noise.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

// The breakers by their first token. Shared by the copies of a link.
class Breakers {
 public:
  Breakers(std::shared_ptr<const std::vector<std::vector<int32_t>>> sequences, int64_t vocab_size)
      : sequences_(std::move(sequences)),
        starts_(static_cast<size_t>(vocab_size)),
        alone_(static_cast<size_t>(vocab_size)) {
    if (!sequences_) return;
    for (uint32_t i = 0; i < sequences_->size(); ++i) {
      const std::vector<int32_t>& sequence = (*sequences_)[i];
      if (sequence.empty() || sequence[0] < 0 || sequence[0] >= vocab_size) continue;
      starts_[static_cast<size_t>(sequence[0])] = true;
      if (sequence.size() == 1) alone_[static_cast<size_t>(sequence[0])] = true;
      by_head_.push_back(i);
    }
    std::stable_sort(by_head_.begin(), by_head_.end(), [&](uint32_t a, uint32_t b) { return head(a) < head(b); });
  }

  bool single(int32_t id) const { return alone_[static_cast<size_t>(id)]; }

  // Tokens after the last breaker; all where there is none. Of breakers that start at the same place the longest
  // counts.
  size_t tokens_since(std::span<const int32_t> tokens) const {
    for (size_t after = 0; after < tokens.size(); ++after) {  // tokens after the one looked at
      const size_t at = tokens.size() - 1 - after;
      const int32_t id = tokens[at];
      if (id < 0 || static_cast<size_t>(id) >= starts_.size() || !starts_[static_cast<size_t>(id)]) continue;
      size_t longest = 0;
      auto next = std::lower_bound(by_head_.begin(), by_head_.end(), id,
                                   [&](uint32_t i, int32_t want) { return head(i) < want; });
      for (; next != by_head_.end() && head(*next) == id; ++next) {
        const std::vector<int32_t>& sequence = (*sequences_)[*next];
        if (sequence.size() > longest && sequence.size() - 1 <= after &&
            std::equal(sequence.begin(), sequence.end(), tokens.begin() + static_cast<std::ptrdiff_t>(at)))
          longest = sequence.size();
      }
      if (longest > 0) return after + 1 - longest;
    }
    return tokens.size();
  }

 private:
  int32_t head(uint32_t i) const { return (*sequences_)[i][0]; }

  std::shared_ptr<const std::vector<std::vector<int32_t>>> sequences_;
  std::vector<bool> starts_, alone_;  // by id
  std::vector<uint32_t> by_head_;
};

class Dry final : public Sampler {
 public:
  Dry(const SamplingParams& params, int64_t vocab_size)
      : multiplier_(params.dry_multiplier),
        base_(params.dry_base),
        allowed_(static_cast<size_t>(params.dry_allowed_length)),
        window_(params.dry_penalty_last_n),
        // Powers are held below the largest float.
        max_exponent_(base_ > 1.000001 ? static_cast<size_t>(88.7228391 / portable_log(base_)) : ~size_t{0}),
        breakers_(std::make_shared<const Breakers>(params.dry_breakers, vocab_size)),
        longest_(static_cast<size_t>(vocab_size), kNone) {
    followers_.reserve(static_cast<size_t>(vocab_size));
  }
  Dry(const Dry& other)
      : multiplier_(other.multiplier_),
        base_(other.base_),
        allowed_(other.allowed_),
        window_(other.window_),
        max_exponent_(other.max_exponent_),
        breakers_(other.breakers_),
        longest_(other.longest_) {
    followers_.reserve(other.followers_.capacity());
    matches_.reserve(other.matches_.capacity());
  }
  Dry& operator=(const Dry&) = delete;

  const char* name() const override { return "dry"; }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    const std::span<const int32_t> tokens =
        window_ < 0 ? history.tokens
                    : history.tokens.last(std::min(history.tokens.size(), static_cast<size_t>(window_)));
    if (tokens.size() <= allowed_) return;
    const size_t limit = breakers_->tokens_since(tokens);
    if (limit < allowed_) return;
    match(tokens, limit);
    collect_followers(tokens);
    for (const int32_t id : followers_) {
      const size_t repeated = longest_[static_cast<size_t>(id)];
      longest_[static_cast<size_t>(id)] = kNone;
      Candidate* candidate = breakers_->single(id) ? nullptr : find_candidate(candidates, id);
      if (candidate == nullptr || candidate->logit == kMinusInfinity) continue;
      const double lowered = candidate->logit - multiplier_ * power(std::min(repeated - allowed_, max_exponent_));
      // Made unlikely, not banned.
      candidate->logit = static_cast<float>(std::max<double>(lowered, std::numeric_limits<float>::lowest()));
    }
    followers_.clear();
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Dry>(*this); }

 private:
  static constexpr uint32_t kNone = ~0u;

  // matches_[k] = how many of the last tokens, at most `limit`, also end k tokens before the end: the Z function of
  // the reversed window, in linear time. [left, right) is the match that reaches farthest back.
  void match(std::span<const int32_t> tokens, size_t limit) {
    const size_t n = tokens.size();
    if (matches_.capacity() < n) matches_.reserve(n + n / 2 + 4096);
    matches_.assign(n, 0);
    const int32_t* last = tokens.data() + n - 1;
    size_t left = 0, right = 0;
    for (size_t k = 1; k < n; ++k) {
      size_t length = k < right ? std::min<size_t>(matches_[k - left], right - k) : 0;
      while (length < limit && k + length < n &&
             last[-static_cast<std::ptrdiff_t>(length)] == last[-static_cast<std::ptrdiff_t>(k + length)])
        ++length;
      matches_[k] = static_cast<uint32_t>(length);
      if (k + length <= right) continue;
      left = k;
      right = k + length;
    }
  }

  void collect_followers(std::span<const int32_t> tokens) {
    for (size_t k = 1; k < tokens.size(); ++k) {
      if (matches_[k] < allowed_) continue;
      const int32_t follower = tokens[tokens.size() - k];
      if (follower < 0 || static_cast<size_t>(follower) >= longest_.size()) continue;
      uint32_t& longest = longest_[static_cast<size_t>(follower)];
      if (longest == kNone) followers_.push_back(follower);
      if (longest == kNone || longest < matches_[k]) longest = matches_[k];
    }
  }

  double power(size_t exponent) const {
    double result = 1;
    for (double square = base_; exponent > 0; exponent >>= 1, square *= square)
      if (exponent & 1) result *= square;
    return result;
  }

  double multiplier_, base_;
  size_t allowed_;
  int64_t window_;
  size_t max_exponent_;
  std::shared_ptr<const Breakers> breakers_;
  std::vector<uint32_t> matches_;   // by distance from the end; grows with the history
  std::vector<uint32_t> longest_;   // by id: the longest match it followed, kNone between two tokens
  std::vector<int32_t> followers_;  // ids with such a match
};

}  // namespace

std::unique_ptr<Sampler> make_dry(const SamplingParams& params, int64_t vocab_size) {
  if (params.dry_multiplier == 0 || params.dry_penalty_last_n == 0) return nullptr;
  return std::make_unique<Dry>(params, vocab_size);
}

}  // namespace vedette::sampling
