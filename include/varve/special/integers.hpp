// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/special/bitwise.hpp>

/// @file
/// Elementwise operators on integers, without bool. They have no derivatives. Floating-point dtypes and bool throw
/// `dtype_error`.
namespace varve {

/// Bits of x shifted left by y, which is x * 2^y; 0 if y is negative or at least the number of bits.
inline constexpr struct bitwise_left_shift_t : promoting_operator<bitwise_left_shift_t> {
  static constexpr auto op_name = "bitwise_left_shift";
} bitwise_left_shift{};
/// Bits of x shifted right by y, which is x / 2^y rounded down. A y that is negative or too large shifts out all bits
/// but the sign.
inline constexpr struct bitwise_right_shift_t : promoting_operator<bitwise_right_shift_t> {
  static constexpr auto op_name = "bitwise_right_shift";
} bitwise_right_shift{};
/// Greatest common divisor.
inline constexpr struct gcd_t : promoting_operator<gcd_t> {
  static constexpr auto op_name = "gcd";
} gcd{};
/// Least common multiple.
inline constexpr struct lcm_t : promoting_operator<lcm_t> {
  static constexpr auto op_name = "lcm";
} lcm{};

template <>
struct rules<bitwise_left_shift_t> : detail::of_integers<bitwise_left_shift_t, 2, false> {
  static constexpr char const* c99 = "kernel::shift_left($0, $1)";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::shift_left(a, b); }, x, y);
  }
};
template <>
struct rules<bitwise_right_shift_t> : detail::of_integers<bitwise_right_shift_t, 2, false> {
  static constexpr char const* c99 = "kernel::shift_right($0, $1)";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::shift_right(a, b); }, x, y);
  }
};
template <>
struct rules<gcd_t> : detail::of_integers<gcd_t, 2, false> {
  static constexpr char const* c99 = "kernel::greatest_divisor($0, $1)";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::greatest_divisor(a, b); }, x, y);
  }
};
template <>
struct rules<lcm_t> : detail::of_integers<lcm_t, 2, false> {
  static constexpr char const* c99 = "kernel::least_multiple($0, $1)";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::least_multiple(a, b); }, x, y);
  }
};

} // namespace varve
