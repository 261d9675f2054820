// Keeps the smallest set of most probable candidates whose mass reaches p. Ties go to lower ids.
#include <algorithm>
#include <array>

#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class TopP final : public Sampler {
 public:
  TopP(double p, int64_t vocab_size) : p_(p) { border_.reserve(static_cast<size_t>(vocab_size)); }
  const char* name() const override { return "top_p"; }

  // Candidates fall into buckets by their distance from the best logit; only the bucket in which the mass reaches p
  // is sorted. Masses are summed in id order inside a bucket, buckets from the best on: a fixed order.
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const float best = max_logit(candidates);
    if (best == kMinusInfinity) return;
    mass_.fill(0);
    for (const Candidate& candidate : candidates)
      mass_[bucket(best, candidate.logit)] += portable_exp(candidate.logit - best);
    double total = 0;
    for (const double mass : mass_) total += mass;

    const double target = p_ * total;
    double reached = 0;
    size_t cut = 0;
    while (cut + 1 < kBuckets && reached + mass_[cut] < target) reached += mass_[cut++];
    const Candidate last = last_kept(candidates, best, cut, target - reached);
    std::erase_if(candidates, [&](const Candidate& candidate) { return better(last, candidate); });
  }

  std::unique_ptr<Sampler> clone() const override {
    auto copy = std::make_unique<TopP>(*this);
    copy->border_.reserve(border_.capacity());
    return copy;
  }

 private:
  static constexpr size_t kBuckets = 1024;
  static constexpr float kPerNat = 32;

  static size_t bucket(float best, float logit) {
    const float place = (best - logit) * kPerNat;
    return place < static_cast<float>(kBuckets - 1) ? static_cast<size_t>(place) : kBuckets - 1;
  }

  // The candidate of bucket `cut` with which the bucket's own mass, from its best on, reaches `missing`.
  Candidate last_kept(const std::vector<Candidate>& candidates, float best, size_t cut, double missing) {
    border_.clear();
    for (const Candidate& candidate : candidates)
      if (bucket(best, candidate.logit) == cut) border_.push_back(candidate);
    std::sort(border_.begin(), border_.end(), better);
    double mass = 0;
    for (const Candidate& candidate : border_) {
      mass += portable_exp(candidate.logit - best);
      if (mass >= missing) return candidate;
    }
    return border_.back();
  }

  double p_;
  std::array<double, kBuckets> mass_{};
  std::vector<Candidate> border_;
};

}  // namespace

std::unique_ptr<Sampler> make_top_p(const SamplingParams& params, int64_t vocab_size) {
  if (params.top_p >= 1) return nullptr;
  return std::make_unique<TopP>(params.top_p, vocab_size);
}

}  // namespace vedette::sampling
