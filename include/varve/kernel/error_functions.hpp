// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/erf.hpp>
#include <varve/kernel/gamma.hpp>

#include <cmath>

/// @file
/// What is made of the error function: its complement, also scaled, the logarithm of the normal distribution function,
/// and inverses. Computed in double, usable in constant expressions.
namespace varve::kernel::distribution {

using gamma::infinity;
using gamma::nan;
/// Steps that the inverses take for values, or batches, of a type.
template <class V>
inline constexpr int halley_steps = [] {
  if constexpr (is_batch<V>) return sizeof(element_t<V>) == 4 ? 1 : 2;
  else return sizeof(V) == 4 ? 1 : 2;
}();
inline constexpr double root_pi = 1.77245385090551602730, root_half = 0.70710678118654752440;

/// What erf is made of (`kernel/erf.hpp`): e^(x^2) erfc(x) = 1 - x (2/sqrt(pi) - x S(x)), for small x >= 0, where
/// the difference keeps digits: within 1e-15 below 1.25, within 3e-13 below 3.
constexpr double scaled_by_quotient(double x) {
  using c = error_function::table<double>;
  double p = 0, q = 0;
  for (int k = 6; k >= 0; --k) p = p * x + c::p[k];
  for (int k = 7; k >= 0; --k) q = q * x + c::q[k];
  return 1 - x * (c::slope - x * (p / q));
}
/// e^(x^2) = exp(high^2) exp(low (x + high)).
constexpr double exp_of_square(double x) {
  double const high = static_cast<double>(static_cast<float>(x)), low = x - high;
  return kernel::exp(high * high) * kernel::exp(low * (x + high));
}
/// e^(x^2) erfc(x) for x >= 0: by a quotient of polynomials and the standard library, in constant expressions by a
/// series below 1 and a continued fraction. `single`: as exact as floats are, and more.
constexpr double scaled_above(double x, bool single = false) {
  if (!std::is_constant_evaluated()) {
    if (x < (single ? 3 : 1.25)) return scaled_by_quotient(x);
    if (x < 26) return exp_of_square(x) * std::erfc(x);
  }
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
constexpr double erfcx(double x, bool single = false) {
  if (x != x) return x;
  if (x >= 0) return scaled_above(x, single);
  if (x < -26.7) return infinity;
  return 2 * exp_of_square(x) - scaled_above(-x, single);
}
/// 1 - erf(x) without cancellation.
constexpr double erfc(double x) {
  if (x != x) return x;
  if (!std::is_constant_evaluated()) return std::erfc(x);
  if (x < 0.5) return 1 - kernel::erf(x);
  if (x > 27.3) return 0;
  double const high = static_cast<double>(static_cast<float>(x)), low = x - high;
  return kernel::exp(-high * high) * kernel::exp(-low * (x + high)) * scaled_above(x);
}
/// ... of doubles that were floats, within 1e-11: e^(-x^2), whose exponent is exact, times what `scaled_by_quotient`
/// says below 3, and beyond that a continued fraction.
VARVE_INLINE batch<double> erfc_of_floats(batch<double> const& x) {
  using V = batch<double>;
  using c = error_function::table<double>;
  V const a = library::abs(x), one(1.), limit(3.);
  V scaled = one - a * (V(c::slope) - a * (kernel::polynomial<double>(c::p, a) / kernel::polynomial<double>(c::q, a)));
  auto const beyond = a > limit;
  if (kernel::any<double>(beyond)) {
    V rest = a;
    for (int k = 12; k > 0; --k) rest = a + V(k / 2.0) / rest;
    scaled = kernel::select<double>(beyond, V(1 / root_pi) / rest, scaled);
  }
  V const y = kernel::exp<double>(kernel::negate<double>(a * a)) * scaled;
  return kernel::select<double>(x < V(0.), V(2.) - y, y);
}
/// erfc of scalars and batches.
template <class V>
VARVE_INLINE constexpr V erfc_of(V const& x) {
  if constexpr (has_halves<V>) {
    V const most(20.0f), clamped = kernel::minimum(kernel::maximum(x, V(-20.0f)), most); // 0 and 2, and NaN stays
    return kernel::by_halves([](batch<double> const& v) { return distribution::erfc_of_floats(v); }, clamped);
  } else return kernel::in_double([](double a) { return distribution::erfc(a); }, x);
}
/// The logarithm of the normal distribution function, without underflow.
constexpr double log_ndtr(double x, bool single = false) {
  if (x != x) return x;
  if (x > -1) return kernel::log1p(-erfc(x * root_half) / 2);
  if (x == -infinity) return x;
  return kernel::log(scaled_above(-x * root_half, single) / 2) - x * x / 2;
}
/// Where the normal distribution function is p, for p <= 1/2: from a place near it (within 5e-4: Abramowitz and Stegun
/// 26.2.23) by Halley's steps on its logarithm, whose derivatives are s = sqrt(2/pi) / (e^(x^2/2) erfc(-x/sqrt 2)) and
/// -s (x + s). One step is enough for a float, two for a double.
constexpr double ndtri_lower(double p, int steps) {
  double const l = kernel::log(p), t = kernel::sqrt(-2 * l);
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int k = 0; k < steps; ++k) {
    double const e = erfcx(-x * root_half, steps == 1), s = 0.79788456080286535588 / e;
    double const f = kernel::log(e / 2) - x * x / 2 - l;
    x -= f / s / (1 + f * (x + s) / (2 * s));
  }
  return x;
}
constexpr double ndtri(double p, int steps = 2) {
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0 || p == 1) return p == 0 ? -infinity : infinity;
  return p <= 0.5 ? ndtri_lower(p, steps) : -ndtri_lower(1 - p, steps);
}
/// Of small numbers by the first terms of its series (within 2e-4) and Halley's steps on erf.
constexpr double erfinv(double y, int steps = 2) {
  double const a = y < 0 ? -y : y;
  if (!(a <= 1)) return nan;
  if (a == 1) return y < 0 ? -infinity : infinity;
  if (y == 0) return y;
  double x = 0;
  if (a > 0.5) x = -ndtri_lower((1 - a) / 2, steps) * root_half;
  else {
    double const z = a * a;
    x = a * (0.886226925452758 + z * (0.232013666534654 + z * (0.127556175305598 + z * 0.086552129241547)));
    for (int k = 0; k < steps; ++k) {
      double const u = (kernel::erf(x) - a) * root_pi / 2 * kernel::exp(x * x);
      x -= u / (1 + x * u);
    }
  }
  return y < 0 ? -x : x;
}

} // namespace varve::kernel::distribution
