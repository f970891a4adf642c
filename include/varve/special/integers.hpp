// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/integers.hpp>
#include <varve/rule/pointwise.hpp>

/// @file
/// Elementwise operators of whole numbers and truth values. They have no derivatives; floating dtypes are refused with
/// `dtype_error`.
namespace varve {

/// Bits that both have; logical and of truth values.
inline constexpr struct bitwise_and_t : promoting_operator<bitwise_and_t> {
  static constexpr auto op_name = "bitwise_and";
} bitwise_and{};
/// Bits that either has; logical or of truth values.
inline constexpr struct bitwise_or_t : promoting_operator<bitwise_or_t> {
  static constexpr auto op_name = "bitwise_or";
} bitwise_or{};
/// Bits that one of them has; difference of truth values.
inline constexpr struct bitwise_xor_t : promoting_operator<bitwise_xor_t> {
  static constexpr auto op_name = "bitwise_xor";
} bitwise_xor{};
/// Every bit turned; logical not of truth values.
inline constexpr struct bitwise_not_t : promoting_operator<bitwise_not_t> {
  static constexpr auto op_name = "bitwise_not";
} bitwise_not{};
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

namespace detail {
/// Elementwise operators of some dtypes only: those that `rules<Tag>::takes` names, operands and result.
template <class Tag, int Arity, promotion P = promotion::arithmetic>
struct of_some_dtypes : rule::pointwise<Arity, P> {
  static constexpr meta shape(attributes const& at, meta const* in, int count) {
    dtype const t = rule::pointwise<Arity, P>::compute_type(in, count);
    if (!rules<Tag>::takes(t)) refuse::dtype_is_not_supported(Tag::op_name, name(t));
    return rule::pointwise<Arity, P>::shape(at, in, count);
  }
};
template <class Tag, int Arity, bool Bools = true>
struct of_integers : of_some_dtypes<Tag, Arity> {
  static constexpr bool differentiable = false;
  static constexpr bool accepts_bool = Bools;
  static constexpr bool takes(dtype t) { return category(t) < 2 && (Bools || t != dtype::bool_); }
};
} // namespace detail

template <>
struct rules<bitwise_and_t> : detail::of_integers<bitwise_and_t, 2> {
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return a & b; }, x, y);
  }
};
template <>
struct rules<bitwise_or_t> : detail::of_integers<bitwise_or_t, 2> {
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return a | b; }, x, y);
  }
};
template <>
struct rules<bitwise_xor_t> : detail::of_integers<bitwise_xor_t, 2> {
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return a ^ b; }, x, y);
  }
};
template <>
struct rules<bitwise_not_t> : detail::of_integers<bitwise_not_t, 1> {
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::of_integers(
        []<class T>(T a) {
          if constexpr (std::is_same_v<T, bool>) return !a;
          else return ~a;
        },
        x);
  }
};
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
