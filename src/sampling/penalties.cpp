// Penalties on tokens of the last repeat_last_n tokens, prompt included. For each distinct one:
//   repetition r:              logit > 0 ? logit / r : logit * r
//   frequency f, presence p:   logit -= f * count + p
#include <algorithm>
#include <cstdint>

#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class Penalties final : public Sampler {
 public:
  Penalties(const SamplingParams& params, int64_t vocab_size)
      : repetition_(static_cast<float>(params.repetition_penalty)),
        frequency_(static_cast<float>(params.frequency_penalty)),
        presence_(static_cast<float>(params.presence_penalty)),
        window_(params.repeat_last_n),
        counts_(static_cast<size_t>(vocab_size), 0),
        places_(static_cast<size_t>(vocab_size), -1) {
    distinct_.reserve(static_cast<size_t>(window_ < 0 ? vocab_size : std::min(window_ + 1, vocab_size)));
  }

  const char* name() const override { return "penalties"; }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    follow(history.tokens);
    for (const int32_t id : distinct_) {
      Candidate* candidate = find_candidate(candidates, id);
      if (candidate == nullptr) continue;
      float& logit = candidate->logit;
      const float repeated = logit > 0 ? logit / repetition_ : logit * repetition_;
      logit = tame(repeated - (frequency_ * static_cast<float>(counts_[static_cast<size_t>(id)]) + presence_));
    }
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Penalties>(*this); }

 private:
  // Counts cover tokens [begin_, end_); moves both to the history's window.
  void follow(std::span<const int32_t> tokens) {
    const int64_t size = static_cast<int64_t>(tokens.size());
    const int64_t begin = window_ < 0 ? 0 : std::max<int64_t>(0, size - window_);
    for (; begin_ < std::min(begin, end_); ++begin_) remove(tokens[static_cast<size_t>(begin_)]);
    begin_ = begin;
    for (end_ = std::max(end_, begin); end_ < size; ++end_) add(tokens[static_cast<size_t>(end_)]);
  }

  bool known(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < counts_.size(); }

  void add(int32_t id) {
    if (!known(id)) return;
    if (counts_[static_cast<size_t>(id)]++ > 0) return;
    places_[static_cast<size_t>(id)] = static_cast<int32_t>(distinct_.size());
    distinct_.push_back(id);
  }

  void remove(int32_t id) {
    if (!known(id) || --counts_[static_cast<size_t>(id)] > 0) return;
    const int32_t place = places_[static_cast<size_t>(id)];
    const int32_t last = distinct_.back();
    distinct_[static_cast<size_t>(place)] = last;
    places_[static_cast<size_t>(last)] = place;
    distinct_.pop_back();
  }

  float repetition_, frequency_, presence_;
  int64_t window_;
  int64_t begin_ = 0, end_ = 0;
  std::vector<int32_t> counts_;    // by id
  std::vector<int32_t> places_;    // by id: where it stands in distinct_
  std::vector<int32_t> distinct_;  // ids with a count
};

}  // namespace

std::unique_ptr<Sampler> make_penalties(const SamplingParams& params, int64_t vocab_size) {
  const bool neutral = params.repetition_penalty == 1 && params.frequency_penalty == 0 && params.presence_penalty == 0;
  if (neutral || params.repeat_last_n == 0) return nullptr;
  return std::make_unique<Penalties>(params, vocab_size);
}

}  // namespace vedette::sampling
