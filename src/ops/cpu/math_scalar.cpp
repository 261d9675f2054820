#include "ops/cpu/math_scalar.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace vedette::ops::cpu {
namespace {

// Taylor series on |r| <= pi / 4; the first term left out is below 1e-16.
double sin_of(double r) {
  const double u = r * r;
  double p = -1.0 / 1307674368000.0;  // 1 / 15!
  p = p * u + 1.0 / 6227020800.0;
  p = p * u - 1.0 / 39916800.0;
  p = p * u + 1.0 / 362880.0;
  p = p * u - 1.0 / 5040.0;
  p = p * u + 1.0 / 120.0;
  p = p * u - 1.0 / 6.0;
  return r + r * u * p;
}

double cos_of(double r) {
  const double u = r * r;
  double p = 1.0 / 20922789888000.0;  // 1 / 16!
  p = p * u - 1.0 / 87178291200.0;
  p = p * u + 1.0 / 479001600.0;
  p = p * u - 1.0 / 3628800.0;
  p = p * u + 1.0 / 40320.0;
  p = p * u - 1.0 / 720.0;
  p = p * u + 1.0 / 24.0;
  p = p * u - 0.5;
  return 1.0 + u * p;
}

}  // namespace

SinCos sin_cos(float angle) {
  const double x = angle;
  if (!(std::fabs(x) <= 2147483648.0)) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    return {nan, nan};
  }
  // x = k pi / 2 + r. Pi / 2 in parts of 24 bits: k times a part is exact.
  const double k = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  double r = x - k * 0x1.921fb5p+0;
  r -= k * 0x1.110b46p-26;
  r -= k * 0x1.1a6263p-54;
  const double s = sin_of(r);
  const double c = cos_of(r);
  switch (static_cast<int64_t>(k) & 3) {
    case 0:
      return {static_cast<float>(s), static_cast<float>(c)};
    case 1:
      return {static_cast<float>(c), static_cast<float>(-s)};
    case 2:
      return {static_cast<float>(-s), static_cast<float>(-c)};
    default:
      return {static_cast<float>(-c), static_cast<float>(s)};
  }
}

double natural_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  // log m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 + ...), |s| <= 0.172
  const double s = (m - 1) / (m + 1);
  const double u = s * s;
  double p = 0;
  for (int k = 21; k >= 3; k -= 2) p = (p + 1.0 / k) * u;
  return exponent * 0.69314718055994531 + (2 * s + 2 * s * p);
}

}  // namespace vedette::ops::cpu
