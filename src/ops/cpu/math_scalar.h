// Scalar functions in double precision, by plain operations only, so that every machine gives the same bits.
#pragma once

namespace vedette::ops::cpu {

struct SinCos {
  float sin = 0, cos = 0;
};

// Of an angle in radians; within half a unit of float32's last place and a little. NaN beyond 2^31 and for NaN.
SinCos sin_cos(float angle);

// Natural logarithm of a finite x > 0, within a few units of double's last place.
double natural_log(double x);

}  // namespace vedette::ops::cpu
