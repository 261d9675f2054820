// llama.cpp's sampler for filling in: a short piece that is sure, or the end. With p over n candidates, of which some
// end the text and the others write it:
//   1. if 3 n sum p(ends) > sum p(others), the ends are left;
//   2. else, the likeliest first: where the bytes of one begin those of another, the likelier takes both probabilities
//      and the other goes;
//   3. others with p < 0.2 go; if none is left, the end token alone stays;
//   4. p is made to sum to 1, and of the m others those with p < 1 / (m + 1) go.
// What is left keeps its logit: the probabilities of 2 decide who stays, not how the draw goes.
#include <algorithm>

#include "sampling/infill_vocabulary.h"
#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class Infill final : public Sampler {
 public:
  Infill(std::shared_ptr<const InfillVocabulary> vocabulary, int64_t vocab_size)
      : vocabulary_(std::move(vocabulary)), at_place_(vocabulary_->size(), kNone) {
    items_.reserve(static_cast<size_t>(vocab_size));
    begun_.reserve(static_cast<size_t>(vocab_size));
  }
  Infill(const Infill& other) : vocabulary_(other.vocabulary_), at_place_(other.at_place_) {
    items_.reserve(other.items_.capacity());
    begun_.reserve(other.begun_.capacity());
  }
  Infill& operator=(const Infill&) = delete;

  const char* name() const override { return "infill"; }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<Infill>(*this); }

  void apply(std::vector<Candidate>& candidates, const History& history) override {
    const SoftmaxSums sums = softmax_sums(candidates);
    if (sums.best == kMinusInfinity) return;
    double ends = 0;
    items_.clear();
    for (const Candidate& candidate : candidates) {
      const double p = portable_exp(std::max(candidate.logit - sums.best, -100.0f)) / sums.sum;
      const bool end = is_end(candidate.id);
      if (end) ends += p;
      items_.push_back({candidate.id, p, candidate.logit > kMinusInfinity, end});
    }
    if (3 * ends * static_cast<double>(items_.size()) > 1 - ends) {
      std::erase_if(candidates, [&](const Candidate& candidate) { return !is_end(candidate.id); });
      return;
    }
    std::sort(items_.begin(), items_.end(), better<Item>);
    join();
    if (!cut()) return only_the_end(candidates, history);
    const auto by_id = [](const Item& a, const Item& b) { return a.id < b.id; };
    std::sort(items_.begin(), items_.end(), by_id);
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return !std::binary_search(items_.begin(), items_.end(), Item{candidate.id}, by_id);
    });
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr double kSure = 0.2;

  struct Item {
    int32_t id;
    double p = 0;
    bool alive = false, end = false;
    friend double rank(const Item& item) { return item.p; }
  };

  bool known(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < vocabulary_->size(); }
  bool is_end(int32_t id) const { return known(id) && vocabulary_->ends(id); }

  void join() {
    for (uint32_t i = 0; i < items_.size(); ++i)
      if (known(items_[i].id)) at_place_[vocabulary_->place(items_[i].id)] = i;
    for (uint32_t i = 0; i < items_.size(); ++i) {
      Item& item = items_[i];
      if (!item.alive || !known(item.id)) continue;
      const auto [first, last] = vocabulary_->begun_by(item.id);
      begun_.clear();
      for (uint32_t place = first; place < last; ++place)
        if (const uint32_t other = at_place_[place]; other != kNone && other != i && items_[other].alive)
          begun_.push_back(other);
      std::sort(begun_.begin(), begun_.end());
      for (const uint32_t other : begun_) {
        if (!item.alive) break;
        const bool taken = items_[other].p > item.p;
        Item& winner = taken ? items_[other] : item;
        Item& loser = taken ? item : items_[other];
        winner.p += loser.p;
        loser.p = 0;
        loser.alive = false;
      }
    }
    for (const Item& item : items_)
      if (known(item.id)) at_place_[vocabulary_->place(item.id)] = kNone;
  }

  // Whether any token that writes text is left.
  bool cut() {
    std::erase_if(items_, [](const Item& item) { return !item.alive || (!item.end && item.p < kSure); });
    double sum = 0;
    size_t others = 0;
    for (const Item& item : items_) {
      sum += item.p;
      others += item.end ? 0 : 1;
    }
    if (others == 0) return false;
    const double least = sum / static_cast<double>(others + 1);
    std::erase_if(items_, [&](const Item& item) { return !item.end && item.p < least; });
    return true;
  }

  // Where the output's constraint does not allow the end, the likeliest token stays.
  void only_the_end(std::vector<Candidate>& candidates, const History& history) {
    const int32_t end = vocabulary_->end();
    const auto word = static_cast<size_t>(end) / 32;
    const bool allowed =
        end >= 0 &&
        (history.allowed.empty() || (word < history.allowed.size() && (history.allowed[word] >> (end % 32) & 1) != 0));
    const Candidate best = *std::max_element(candidates.begin(), candidates.end(),
                                             [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; });
    candidates.clear();
    candidates.push_back(allowed ? Candidate{end, 0} : best);
  }

  std::shared_ptr<const InfillVocabulary> vocabulary_;
  std::vector<uint32_t> at_place_;  // by place: the item of the token there; kNone between two calls
  std::vector<Item> items_;         // the candidates, the likeliest first
  std::vector<uint32_t> begun_;
};

}  // namespace

std::unique_ptr<Sampler> make_infill(const SamplingParams& params, int64_t vocab_size) {
  if (!params.infill_vocabulary) return nullptr;
  return std::make_unique<Infill>(params.infill_vocabulary, vocab_size);
}

}  // namespace vedette::sampling
