// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/arithmetic.hpp>

#include <bit>
#include <cstdint>
#include <limits>

/// @file
/// Functions of the bits of floating-point numbers: neighbours, signs and exponents.
namespace varve::kernel {

/// Returns the next number after x in the direction of y.
template <floating T>
constexpr T neighbour(T x, T y) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  if (x != x) return x;
  if (y != y || x == y) return y;
  auto const b = std::bit_cast<bits>(x);
  if (x == 0) return std::bit_cast<T>(static_cast<bits>(1 | (y < 0 ? bits(1) << (sizeof(T) * 8 - 1) : bits(0))));
  return std::bit_cast<T>((x < y) == (x > 0) ? b + 1 : b - 1);
}
template <floating_lane T>
VARVE_INLINE batch<T> neighbour(batch<T> const& x, batch<T> const& y) {
  return kernel::lanewise([](T a, T b) { return kernel::neighbour(a, b); }, x, y);
}
/// Returns the absolute value of x with the sign of y, also for zeros and NaN.
template <floating T>
constexpr T copysign(T x, T y) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr bits sign = bits(1) << (sizeof(T) * 8 - 1);
  return std::bit_cast<T>(static_cast<bits>((std::bit_cast<bits>(x) & ~sign) | (std::bit_cast<bits>(y) & sign)));
}
template <floating_lane T>
VARVE_INLINE batch<T> copysign(batch<T> const& x, batch<T> const& y) {
  return library::copysign(x, y);
}
/// Returns the exponent e of x = m 2^e with 0.5 <= |m| < 1; 0 if x is 0 or not finite.
template <floating T>
constexpr T binary_exponent(T x) {
  double const a = constant::magnitude(static_cast<double>(x));
  if (a != a || a == 0 || a == std::numeric_limits<double>::infinity()) return 0;
  return static_cast<T>(constant::split(a).k + 1);
}
template <floating_lane T>
VARVE_INLINE batch<T> binary_exponent(batch<T> const& x) {
  return kernel::lanewise([](T a) { return kernel::binary_exponent(a); }, x);
}

} // namespace varve::kernel
