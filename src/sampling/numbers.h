// Small numeric helpers of the links; plain IEEE arithmetic, the same bits everywhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "sampling/sampling.h"

namespace vedette::sampling {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Logits are finite or -infinity throughout the chain: NaN becomes -infinity, overflow the largest float.
inline float tame(float logit) {
  return logit == logit ? std::min(logit, std::numeric_limits<float>::max()) : kMinusInfinity;
}

// The largest logit; -infinity for no candidates. Eight running maxima let the compiler use vectors.
inline float max_logit(const std::vector<Candidate>& candidates) {
  float lanes[8];
  std::fill(std::begin(lanes), std::end(lanes), kMinusInfinity);
  const size_t n = candidates.size();
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (size_t lane = 0; lane < 8; ++lane)
      lanes[lane] = candidates[i + lane].logit > lanes[lane] ? candidates[i + lane].logit : lanes[lane];
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], candidates[i].logit);
  return *std::max_element(std::begin(lanes), std::end(lanes));
}

inline float rank(const Candidate& candidate) {
  return candidate.logit;
}

// Higher ranks first, then lower ids: a total order of candidates, and of whatever else has an id and a rank.
template <typename Item>
bool better(const Item& a, const Item& b) {
  return rank(a) > rank(b) || (rank(a) == rank(b) && a.id < b.id);
}

// e^x for x <= 0, relative error below 2^-22; 0 below -87. x = n log 2 + r, |r| <= log(2)/2; Taylor in r.
inline float portable_exp(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = (clamped * 1.44269504f + kMagic) - kMagic;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const float power = std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
  return x < -87.0f ? 0.0f : p * power;
}

// e^x for |x| <= 700 (what lies beyond is clamped), relative error below 2^-48. Taylor as above, in double.
inline double precise_exp(double x) {
  const double clamped = std::clamp(x, -700.0, 700.0);
  constexpr double kMagic = 0x1.8p52;
  const double n = (clamped * 1.4426950408889634 + kMagic) - kMagic;
  const double r = (clamped - n * 0x1.62e42fefap-1) - n * 0x1.cf79abc9e3b3ap-40;
  double p = 1;
  for (int term = 14; term >= 1; --term) p = p * r / term + 1.0;
  return p * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

// Over all candidates, with w = e^(logit - best): best, sum w, sum w (best - logit). So a probability is w / sum, and
// the entropy log sum + distance / sum. Best is -infinity and the sums 0 where there is no number above -infinity.
struct SoftmaxSums {
  float best;
  double sum;
  double distance;
};

// Eight running sums: a fixed order that lets the compiler use vectors.
inline SoftmaxSums softmax_sums(const std::vector<Candidate>& candidates) {
  const float best = max_logit(candidates);
  if (best == kMinusInfinity) return {best, 0, 0};
  double sums[8] = {}, distances[8] = {};
  const auto add = [&](size_t lane, float logit) {
    const float distance = std::min(best - logit, 100.0f);  // beyond 87 the weight is 0
    const float weight = portable_exp(-distance);
    sums[lane] += weight;
    distances[lane] += static_cast<double>(weight) * distance;
  };
  const size_t n = candidates.size();
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (size_t lane = 0; lane < 8; ++lane) add(lane, candidates[i + lane].logit);
  for (; i < n; ++i) add(0, candidates[i].logit);
  SoftmaxSums result{best, 0, 0};
  for (size_t lane = 0; lane < 8; ++lane) {
    result.sum += sums[lane];
    result.distance += distances[lane];
  }
  return result;
}

// The candidate of an id; null where it was removed or never was. Where nothing was removed it is found at once.
inline Candidate* find_candidate(std::vector<Candidate>& candidates, int32_t id) {
  const auto place = static_cast<size_t>(id);
  if (id >= 0 && place < candidates.size() && candidates[place].id == id) return &candidates[place];
  const auto found = std::lower_bound(candidates.begin(), candidates.end(), id,
                                      [](const Candidate& candidate, int32_t wanted) { return candidate.id < wanted; });
  return found != candidates.end() && found->id == id ? &*found : nullptr;
}

}  // namespace vedette::sampling
