// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/integers.hpp>
#include <varve/rule/pointwise.hpp>

/// @file
/// Bitwise operators on integers and bool: `&`, `|`, `^` and `~`. They have no derivatives. Floating-point dtypes throw
/// `dtype_error`.
namespace varve {

/// Bitwise and; logical and for bool.
inline constexpr struct bitwise_and_t : promoting_operator<bitwise_and_t> {
  static constexpr auto op_name = "bitwise_and";
} bitwise_and{};
/// Bitwise or; logical or for bool.
inline constexpr struct bitwise_or_t : promoting_operator<bitwise_or_t> {
  static constexpr auto op_name = "bitwise_or";
} bitwise_or{};
/// Bitwise exclusive or; inequality for bool.
inline constexpr struct bitwise_xor_t : promoting_operator<bitwise_xor_t> {
  static constexpr auto op_name = "bitwise_xor";
} bitwise_xor{};
/// Bitwise not; logical not for bool.
inline constexpr struct bitwise_not_t : promoting_operator<bitwise_not_t> {
  static constexpr auto op_name = "bitwise_not";
} bitwise_not{};

namespace detail {
/// Base of elementwise operators that compute only in the dtypes for which `rules<Tag>::takes` is true.
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
  static constexpr bool integer_lanes = true;
  static constexpr bool takes(dtype t) { return category(t) < 2 && (Bools || t != dtype::bool_); }
};
} // namespace detail

template <>
struct rules<bitwise_and_t> : detail::of_integers<bitwise_and_t, 2> {
  static constexpr char const* c99 = "$0 & $1";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return a & b; }, x, y);
  }
};
template <>
struct rules<bitwise_or_t> : detail::of_integers<bitwise_or_t, 2> {
  static constexpr char const* c99 = "$0 | $1";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return a | b; }, x, y);
  }
};
template <>
struct rules<bitwise_xor_t> : detail::of_integers<bitwise_xor_t, 2> {
  static constexpr char const* c99 = "$0 ^ $1";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    return kernel::of_integers([](auto a, auto b) { return a ^ b; }, x, y);
  }
};
template <>
struct rules<bitwise_not_t> : detail::of_integers<bitwise_not_t, 1> {
  static constexpr char const* c99 = "($T)-1 ^ $0";
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::of_integers(
        []<class T>(T a) {
          if constexpr (std::is_same_v<T, bool>) return !a;
          else return ~a;
        },
        x);
  }
};

} // namespace varve
