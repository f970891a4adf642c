// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/erf.hpp>
#include <varve/kernel/gamma.hpp>

#include <cmath>

/// @file
/// Functions related to the error function: its complement, the scaled complement, the logarithm of the normal
/// distribution function, and inverses. They are computed in double and usable in constant expressions.
namespace varve::kernel::distribution {

using gamma::infinity;
using gamma::nan;
/// Number of Halley steps in the inverses for a scalar or batch type.
template <class V>
inline constexpr int halley_steps = [] {
  if constexpr (is_batch<V>) return sizeof(element_t<V>) == 4 ? 1 : 2;
  else return sizeof(V) == 4 ? 1 : 2;
}();
inline constexpr double root_pi = 1.77245385090551602730, root_half = 0.70710678118654752440;

/// Returns e^(x^2) erfc(x) = 1 - x (2/sqrt(pi) - x S(x)) for small x >= 0, with S of `kernel/erf.hpp`. The error is
/// within 1e-15 below 1.25, and within 3e-13 below 3.
constexpr double scaled_by_quotient(double x) {
  using c = error_function::table<double>;
  double p = 0, q = 0;
  for (int k = 6; k >= 0; --k) p = p * x + c::p[k];
  for (int k = 7; k >= 0; --k) q = q * x + c::q[k];
  return 1 - x * (c::slope - x * (p / q));
}
/// Returns e^(x^2) = exp(high^2) exp(low (x + high)).
constexpr double exp_of_square(double x) {
  double const high = static_cast<double>(static_cast<float>(x)), low = x - high;
  return kernel::exp(high * high) * kernel::exp(low * (x + high));
}
/// Returns e^(x^2) erfc(x) for x >= 0. It uses a quotient of polynomials and the standard library, but in constant
/// expressions a series below 1 and a continued fraction above. With `single`, errors of up to 3e-13 are allowed, which
/// vanish in float precision.
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
/// Returns 1 - erf(x) without cancellation.
constexpr double erfc(double x) {
  if (x != x) return x;
  if (!std::is_constant_evaluated()) return std::erfc(x);
  if (x < 0.5) return 1 - kernel::erf(x);
  if (x > 27.3) return 0;
  double const high = static_cast<double>(static_cast<float>(x)), low = x - high;
  return kernel::exp(-high * high) * kernel::exp(-low * (x + high)) * scaled_above(x);
}
/// Returns erfc of doubles that were converted from floats, within 1e-11: e^(-x^2), whose exponent is exact, times a
/// scaled erfc. The latter is that of `scaled_by_quotient` up to 3, and a continued fraction beyond.
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
/// Returns erfc of a scalar or a batch.
template <class V>
VARVE_INLINE constexpr V erfc_of(V const& x) {
  if constexpr (has_halves<V>) {
    // erfc is 0 or 2 beyond; NaN stays
    V const most(20.0f), clamped = kernel::minimum(kernel::maximum(x, V(-20.0f)), most);
    return kernel::by_halves([](batch<double> const& v) { return distribution::erfc_of_floats(v); }, clamped);
  } else return kernel::in_double([](double a) { return distribution::erfc(a); }, x);
}
/// Returns the logarithm of the normal distribution function, without underflow.
constexpr double log_ndtr(double x, bool single = false) {
  if (x != x) return x;
  if (x > -1) return kernel::log1p(-erfc(x * root_half) / 2);
  if (x == -infinity) return x;
  return kernel::log(scaled_above(-x * root_half, single) / 2) - x * x / 2;
}
/// Quotients of polynomials for `ndtri` by Wichura (Algorithm AS 241, Applied Statistics 37, 1988): around 1/2, and in
/// sqrt(-log p) up to 5 and beyond.
struct normal_quantile {
  static constexpr double near_half[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
       4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3},
      {1, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3, 2.1213794301586595867e+4,
       3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3}};
  static constexpr double up_to_five[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
       1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
      {1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
       1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
  static constexpr double beyond[2][8] = {
      {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
       2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
      {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
       1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};
  static constexpr double quotient(double const (&c)[2][8], double z) {
    double above = c[0][7], below = c[1][7];
    for (int k = 6; k >= 0; --k) above = above * z + c[0][k], below = below * z + c[1][k];
    return above / below;
  }
};
/// Returns the inverse of the normal distribution function, accurate to a few ulp.
constexpr double ndtri(double p) {
  using quantile = normal_quantile;
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0 || p == 1) return p == 0 ? -infinity : infinity;
  double const q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) return q * quantile::quotient(quantile::near_half, 0.180625 - q * q);
  double const r = kernel::sqrt(-kernel::log(q < 0 ? p : 1 - p));
  double const x =
      r <= 5 ? quantile::quotient(quantile::up_to_five, r - 1.6) : quantile::quotient(quantile::beyond, r - 5);
  return q < 0 ? -x : x;
}
/// Returns the inverse error function. Up to 0.5 it uses the first terms of its series (within 2e-4) and Halley's steps
/// on erf; above, `ndtri`.
constexpr double erfinv(double y, int steps = 2) {
  double const a = y < 0 ? -y : y;
  if (!(a <= 1)) return nan;
  if (a == 1) return y < 0 ? -infinity : infinity;
  if (y == 0) return y;
  double x = 0;
  if (a > 0.5) x = -ndtri((1 - a) / 2) * root_half;
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
