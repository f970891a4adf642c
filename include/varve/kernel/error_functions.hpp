// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/gamma.hpp>

/// @file
/// What is made of the error function: its complement, also scaled, the logarithm of the normal distribution function,
/// and inverses. Computed in double, usable in constant expressions.
namespace varve::kernel::distribution {

using gamma::infinity;
using gamma::nan;
inline constexpr double root_pi = 1.77245385090551602730, root_half = 0.70710678118654752440;

/// e^(x^2) erfc(x) for x >= 0: a series below 1, a continued fraction above.
constexpr double scaled_above(double x) {
  if (x < 1) {
    double even = 1, odd = 2 * x / root_pi, sum = even - odd;
    for (int n = 2; n < 60; n += 2) { // terms (-x)^n / Gamma(n / 2 + 1)
      even *= x * x * 2 / n, odd *= x * x * 2 / (n + 1);
      sum += even - odd;
    }
    return sum;
  }
  if (x > 1e8) return 1 / (root_pi * x);
  int const n = 8 + static_cast<int>(190 / (x * x));
  double rest = x;
  for (int k = n; k > 0; --k) rest = x + k / (2 * rest);
  return 1 / (root_pi * rest);
}
constexpr double erfcx(double x) {
  if (x != x) return x;
  if (x >= 0) return scaled_above(x);
  if (x < -26.7) return infinity;
  double const high = static_cast<double>(static_cast<float>(x)), low = x - high; // x^2 = high^2 + low (x + high)
  return 2 * kernel::exp(high * high) * kernel::exp(low * (x + high)) - scaled_above(-x);
}
/// 1 - erf(x) without cancellation.
constexpr double erfc(double x) {
  if (x != x) return x;
  if (x < 0.5) return 1 - kernel::erf(x);
  if (x > 27.3) return 0;
  double const high = static_cast<double>(static_cast<float>(x)), low = x - high;
  return kernel::exp(-high * high) * kernel::exp(-low * (x + high)) * scaled_above(x);
}
/// The logarithm of the normal distribution function, without underflow.
constexpr double log_ndtr(double x) {
  if (x != x) return x;
  if (x > -1) return kernel::log1p(-erfc(x * root_half) / 2);
  if (x == -infinity) return x;
  return kernel::log(scaled_above(-x * root_half) / 2) - x * x / 2;
}
/// Where the normal distribution function is p: from a rough place below on by Newton's steps on its logarithm, which
/// is concave.
constexpr double ndtri_lower(double p) { // 0 < p <= 1/2
  double const l = kernel::log(p);
  double x = -kernel::sqrt(-2 * l);
  for (int k = 0; k < 60; ++k) {
    double const slope = 2 * root_half * 2 / (root_pi * 2 * scaled_above(-x * root_half));
    double const step = (log_ndtr(x) - l) / slope;
    x -= step;
    if ((step < 0 ? -step : step) <= 1e-16 * (1 - x)) break;
  }
  return x;
}
constexpr double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0 || p == 1) return p == 0 ? -infinity : infinity;
  return p <= 0.5 ? ndtri_lower(p) : -ndtri_lower(1 - p);
}
constexpr double erfinv(double y) {
  double const a = y < 0 ? -y : y;
  if (!(a <= 1)) return nan;
  if (a == 1) return y < 0 ? -infinity : infinity;
  if (y == 0) return y;
  double x = 0;
  if (a > 0.5) x = -ndtri_lower((1 - a) / 2) * root_half;
  else {
    x = a * root_pi / 2;
    for (int k = 0; k < 20; ++k) {
      double const step = (kernel::erf(x) - a) * root_pi / 2 * kernel::exp(x * x);
      x -= step;
      if ((step < 0 ? -step : step) <= 1e-16 * x) break;
    }
  }
  return y < 0 ? -x : x;
}

} // namespace varve::kernel::distribution
