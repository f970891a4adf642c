// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/special/bitwise.hpp>

/// @file
/// Elementwise operators of whole numbers and truth values. They have no derivatives; floating dtypes are refused with
/// `dtype_error`.
namespace varve {

/// x * 2^y by moving bits; 0 where y is no number of bits. Truth values are refused, here and below.
inline constexpr struct bitwise_left_shift_t : promoting_operator<bitwise_left_shift_t> {
  static constexpr auto op_name = "bitwise_left_shift";
} bitwise_left_shift{};
/// x / 2^y rounded down, by moving bits.
inline constexpr struct bitwise_right_shift_t : promoting_operator<bitwise_right_shift_t> {
  static constexpr auto op_name = "bitwise_right_shift";
} bitwise_right_shift{};
/// The greatest common divisor.
inline constexpr struct gcd_t : promoting_operator<gcd_t> {
  static constexpr auto op_name = "gcd";
} gcd{};
/// The least common multiple.
inline constexpr struct lcm_t : promoting_operator<lcm_t> {
  static constexpr auto op_name = "lcm";
} lcm{};

template <>
struct rules<bitwise_left_shift_t> : detail::of_integers<bitwise_left_shift_t, 2, false> {
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::shift_left(a, b); }, x, y);
  }
};
template <>
struct rules<bitwise_right_shift_t> : detail::of_integers<bitwise_right_shift_t, 2, false> {
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::shift_right(a, b); }, x, y);
  }
};
template <>
struct rules<gcd_t> : detail::of_integers<gcd_t, 2, false> {
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::greatest_divisor(a, b); }, x, y);
  }
};
template <>
struct rules<lcm_t> : detail::of_integers<lcm_t, 2, false> {
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return kernel::least_multiple(a, b); }, x, y);
  }
};

} // namespace varve
