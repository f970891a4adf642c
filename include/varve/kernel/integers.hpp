// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/arithmetic.hpp>

#include <cstdint>
#include <type_traits>

/// @file
/// Bits, shifts and divisors of integers. In fused programs, registers of floating-point lanes may hold integers; these
/// are converted lane by lane.
namespace varve::kernel {

/// Applies `f` to integers and returns the result in the type of the operands. Integers in floating-point lanes are
/// converted to int64.
template <class F, class V, class... W>
VARVE_INLINE constexpr V of_integers(F f, V const& x, W const&... y) {
  if constexpr (is_batch<V>) {
    using T = element_t<V>;
    if constexpr (std::is_floating_point_v<T>)
      return kernel::lanewise(
          [f](T a, auto... b) {
            return static_cast<T>(f(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)...));
          },
          x, y...);
    else return kernel::lanewise([f](T a, auto... b) { return static_cast<T>(f(a, b...)); }, x, y...);
  } else if constexpr (std::is_floating_point_v<V>)
    return static_cast<V>(f(static_cast<std::int64_t>(x), static_cast<std::int64_t>(y)...));
  else return static_cast<V>(f(x, y...));
}

/// Returns x shifted left by y; 0 if y is negative or at least the number of bits, as in PyTorch.
template <integral T>
constexpr T shift_left(T x, T y) {
  constexpr int bits = static_cast<int>(sizeof(T)) * 8;
  if constexpr (std::is_signed_v<T>)
    if (y < 0) return 0;
  if (y >= static_cast<T>(bits)) return 0;
  return static_cast<T>(static_cast<std::uint64_t>(x) << y);
}
/// Returns x shifted right by y, keeping the sign. If y is negative or too large, all bits but the sign are shifted
/// out.
template <integral T>
constexpr T shift_right(T x, T y) {
  constexpr int last = static_cast<int>(sizeof(T)) * 8 - std::is_signed_v<T>;
  bool beyond = y >= static_cast<T>(last);
  if constexpr (std::is_signed_v<T>) beyond = beyond || y < 0;
  if (!beyond) return static_cast<T>(x >> y);
  return static_cast<T>(std::is_signed_v<T> && x < T(0) ? -1 : 0);
}
/// Returns the greatest common divisor, which is not negative, unless only the least integer divides both; 0 for two
/// zeros.
template <integral T>
constexpr T greatest_divisor(T x, T y) {
  T a = kernel::abs(x), b = kernel::abs(y);
  while (b != 0) {
    T const r = kernel::fmod(a, b);
    a = b, b = r;
  }
  return kernel::abs(a); // the least integer has no absolute value, and its remainders are negative
}
/// Returns the least common multiple, which is not negative; 0 if either is 0.
template <integral T>
constexpr T least_multiple(T x, T y) {
  T const d = kernel::greatest_divisor(x, y);
  if (d == 0) return 0;
  return kernel::abs(kernel::mul<T>(static_cast<T>(x / d), y));
}

} // namespace varve::kernel
