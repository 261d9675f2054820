// What the numbers of sampling may be: of options, request fields and settings alike. Bounds belong to the range.
#pragma once

namespace vedette {

struct NumberRange {
  double min, max;
};

namespace sampling_ranges {

inline constexpr NumberRange kCount{0, 1e9};
inline constexpr NumberRange kCountOrAll{-1, 1e9};  // -1: without limit
inline constexpr NumberRange kProbability{0, 1};

inline constexpr NumberRange kTemperature{0, 100};
inline constexpr NumberRange kTopNSigma{-1, 1000};
inline constexpr NumberRange kDynamicTemperature{0, 100};  // range and exponent
inline constexpr NumberRange kRepeatPenalty{0.01, 100};    // a divisor
inline constexpr NumberRange kTokenPenalty{-100, 100};     // frequency and presence
inline constexpr NumberRange kDryMultiplier{0, 100};
inline constexpr NumberRange kDryBase{1, 100};
inline constexpr NumberRange kMirostat{0, 2};
inline constexpr NumberRange kMirostatTau{0, 100};
inline constexpr NumberRange kMirostatEta{0, 100};
inline constexpr NumberRange kAdaptiveTarget{-1, 1};
inline constexpr NumberRange kAdaptiveDecay{0, 0.99};

}  // namespace sampling_ranges
}  // namespace vedette
