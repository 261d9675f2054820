// Cuts a distribution where the mass of the candidates taken so far, nearest first, reaches a share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "sampling/numbers.h"
#include "sampling/scratch.h"

namespace vedette::sampling {

// Owned by a link. Candidates fall into buckets by their distance; only the bucket in which the mass reaches the share
// is sorted. Masses are summed in id order inside a bucket, buckets from the nearest on: a fixed order.
class MassCut {
 public:
  // Whether a mass equal to the share is enough.
  enum class Stop { kReached, kExceeded };

  explicit MassCut(size_t vocab_size) : border_(vocab_size) {}

  // Keeps the nearest candidates up to the one with which their mass stops. distance(logit) >= 0; among equals the
  // better candidate is nearer. `best` is the largest logit, above -infinity.
  template <typename Distance>
  void keep(std::vector<Candidate>& candidates, float best, double share, Stop stop, Distance distance) {
    mass_.fill(0);
    for (const Candidate& candidate : candidates)
      mass_[bucket(distance(candidate.logit))] += portable_exp(candidate.logit - best);
    double total = 0;
    for (const double mass : mass_) total += mass;

    const double target = share * total;
    const auto stops = [&](double mass, double at) { return stop == Stop::kReached ? mass >= at : mass > at; };
    double reached = 0;
    size_t cut = 0;
    while (cut + 1 < kBuckets && !stops(reached + mass_[cut], target)) reached += mass_[cut++];

    const auto nearer = [&](const Candidate& a, const Candidate& b) {
      const float x = distance(a.logit), y = distance(b.logit);
      return x < y || (x == y && better(a, b));
    };
    std::vector<Candidate>& border = border_.items;
    border.clear();
    for (const Candidate& candidate : candidates)
      if (bucket(distance(candidate.logit)) == cut) border.push_back(candidate);
    if (border.empty()) return;  // the whole mass does not stop, and nothing lies in the last bucket
    std::sort(border.begin(), border.end(), nearer);
    Candidate last = border.back();
    double mass = 0;
    for (const Candidate& candidate : border) {
      mass += portable_exp(candidate.logit - best);
      if (!stops(mass, target - reached)) continue;
      last = candidate;
      break;
    }
    std::erase_if(candidates, [&](const Candidate& candidate) { return nearer(last, candidate); });
  }

 private:
  static constexpr size_t kBuckets = 1024;
  static constexpr float kPerNat = 32;

  static size_t bucket(float distance) {
    const float place = distance * kPerNat;
    return place < static_cast<float>(kBuckets - 1) ? static_cast<size_t>(place) : kBuckets - 1;
  }

  std::array<double, kBuckets> mass_{};
  Scratch<Candidate> border_;
};

}  // namespace vedette::sampling
