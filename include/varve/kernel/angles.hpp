// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>

#include <limits>

/// @file
/// Inverse trigonometric functions of scalars and batches; batches are accurate to 3 ulp.
namespace varve::kernel {

namespace constant {
/// Returns atan(x) for x in [0, 1] by a series around the nearer of 0 and 1 (angle pi/4).
constexpr wide atan_below_one(wide x) {
  bool const reduced = x > 0.41421356L;
  wide const r = reduced ? (x - 1) / (x + 1) : x, z = r * r;
  wide s = 0;
  for (int k = 57; k >= 1; k -= 2) s = 1.0L / k - z * s;
  return r * s + (reduced ? 0x1.921fb54442d18469898cc51701b8p-1L : 0);
}
/// Returns the angle of a point; zeros and infinities are handled as in the C++ standard.
constexpr double atan2(double y, double x) {
  if (x != x || y != y) return nan;
  constexpr wide pi = 0x1.921fb54442d18469898cc51701b8p1L;
  double const a = magnitude(y), b = magnitude(x);
  wide r = 0;
  if (a == infinity && b == infinity) r = pi / 4;
  else if (a == 0) r = 0;
  else if (b == infinity) r = 0;
  else if (a == infinity || b == 0) r = pi / 2;
  else {
    wide const u = a, v = b;
    r = u <= v ? atan_below_one(u / v) : pi / 2 - atan_below_one(v / u);
  }
  return with_sign(narrow<double>(negative(x) ? pi - r : r), y);
}
constexpr double asin(double x) {
  if (x != x || x == 0) return x;
  if (magnitude(x) > 1) return nan;
  return atan2(x, constant::sqrt((1 - x) * (1 + x)));
}
constexpr double acos(double x) {
  if (x != x) return x;
  if (magnitude(x) > 1) return nan;
  return atan2(constant::sqrt((1 - x) * (1 + x)), x);
}
} // namespace constant

/// Returns the inverse sine in [-pi/2, pi/2]; NaN outside of [-1, 1].
template <floating T>
constexpr T asin(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::asin(x));
  return std::asin(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> asin(batch<T> const& x) {
  return library::asin(x);
}
/// Returns the inverse cosine in [0, pi]; NaN outside of [-1, 1].
template <floating T>
constexpr T acos(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::acos(x));
  return std::acos(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> acos(batch<T> const& x) {
  return library::acos(x);
}
/// Returns the inverse tangent in [-pi/2, pi/2].
template <floating T>
constexpr T atan(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::atan2(x, 1));
  return std::atan(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> atan(batch<T> const& x) {
  return library::atan(x);
}
/// Returns the angle in [-pi, pi] of the point (x, y).
template <floating T>
constexpr T atan2(T y, T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::atan2(y, x));
  return std::atan2(y, x);
}
template <floating_lane T>
VARVE_INLINE batch<T> atan2(batch<T> const& y, batch<T> const& x) {
  using V = batch<T>;
  V const a = library::abs(y), b = library::abs(x), one(T(1)), zero(T(0));
  auto const steep = a > b;
  V const low = kernel::select<T>(steep, b, a), high = kernel::select<T>(steep, a, b);
  V const inf(std::numeric_limits<T>::infinity());
  V const q = kernel::select<T>(high == zero, zero, kernel::select<T>(low == inf, one, low / high));
  V r = library::atan(q);
  r = kernel::select<T>(steep, V(T(0x1.921fb54442d18p0)) - r, r);
  r = kernel::select<T>(library::copysign(one, x) < zero, V(T(0x1.921fb54442d18p1)) - r, r);
  r = library::copysign(r, y);
  return kernel::select<T>(x == x, kernel::select<T>(y == y, r, y), x);
}

} // namespace varve::kernel
