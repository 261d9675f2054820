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

// Higher logits first, then lower ids: a total order of candidates.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
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

}  // namespace vedette::sampling
