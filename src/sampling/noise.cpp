#include "sampling/noise.h"

#include <bit>

namespace vedette::sampling {

// x = m * 2^e with m in [sqrt(1/2), sqrt 2); log m = 2 atanh(s) with s = (m - 1) / (m + 1), |s| < 0.172:
// 2 s (1 + s^2/3 + s^4/5 + ...); the terms left out are below 2^-54 of the sum.
double portable_log(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
  double m = std::bit_cast<double>(bits);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 1.0 / 21;
  for (int odd = 19; odd >= 3; odd -= 2) series = series * z + 1.0 / odd;
  const double log_m = 2.0 * s + 2.0 * s * (z * series);
  // log 2 in two parts: the first has trailing zeros enough for its product with the exponent to be exact.
  constexpr double kLog2High = 0x1.62e42fefap-1;
  constexpr double kLog2Low = 0x1.cf79abc9e3b3ap-40;
  return exponent * kLog2High + (log_m + exponent * kLog2Low);
}

}  // namespace vedette::sampling
