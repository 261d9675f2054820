// Keeps the k candidates with the highest logits; ties go to lower ids.
#include <algorithm>

#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class TopK final : public Sampler {
 public:
  TopK(int64_t k, int64_t vocab_size) : k_(static_cast<size_t>(k)) {
    kept_.reserve(std::min(2 * k_ + kSlack, static_cast<size_t>(vocab_size)) + 1);
  }
  const char* name() const override { return "top_k"; }

  // One pass that collects what beats the k-th best known; when the store is full it is cut to k.
  void apply(std::vector<Candidate>& candidates, const History&) override {
    if (candidates.size() <= k_) return;
    kept_.clear();
    Candidate worst{-1, kMinusInfinity};
    bool full = false;
    for (const Candidate& candidate : candidates) {
      // Ids ascend, so a candidate equal to the worst kept loses.
      if (full && !(candidate.logit > worst.logit)) continue;
      kept_.push_back(candidate);
      if (kept_.size() < 2 * k_ + kSlack) continue;
      worst = cut();
      full = true;
    }
    if (kept_.size() > k_) cut();
    std::sort(kept_.begin(), kept_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    candidates.assign(kept_.begin(), kept_.end());
  }

  std::unique_ptr<Sampler> clone() const override {
    auto copy = std::make_unique<TopK>(*this);
    copy->kept_.reserve(kept_.capacity());
    return copy;
  }

 private:
  static constexpr size_t kSlack = 256;

  Candidate cut() {
    std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(k_) - 1, kept_.end(), better);
    kept_.resize(k_);
    return kept_.back();
  }

  size_t k_;
  std::vector<Candidate> kept_;
};

}  // namespace

std::unique_ptr<Sampler> make_top_k(const SamplingParams& params, int64_t vocab_size) {
  if (params.top_k <= 0 || params.top_k >= vocab_size) return nullptr;
  return std::make_unique<TopK>(params.top_k, vocab_size);
}

}  // namespace vedette::sampling
