// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/kernel/neighbour.hpp>
#include <varve/op/where.hpp>
#include <varve/special/integers.hpp>

/// @file
/// Rounding, remainders, and the parts of floating-point numbers. Bool is refused. An integer divisor of 0 throws
/// `value_error`, except within functions that `fuse` makes of static values, which divide in double.
namespace varve {

/// Greatest integer <= x; integers are unchanged. Derivatives treat it as a constant.
inline constexpr struct floor_t : promoting_operator<floor_t> {
  static constexpr auto op_name = "floor";
} floor{};
/// Smallest integer >= x; integers are unchanged. Derivatives treat it as a constant.
inline constexpr struct ceil_t : promoting_operator<ceil_t> {
  static constexpr auto op_name = "ceil";
} ceil{};
/// Integer part of x, rounded towards 0; integers are unchanged. Derivatives treat it as a constant.
inline constexpr struct trunc_t : promoting_operator<trunc_t> {
  static constexpr auto op_name = "trunc";
} trunc{};
/// Nearest integer, ties to even; integers are unchanged. Derivatives treat it as a constant.
inline constexpr struct round_half_even_t : promoting_operator<round_half_even_t> {
  static constexpr auto op_name = "round";
} round_half_even{};
/// Quotient rounded down. Derivatives treat it as a constant.
inline constexpr struct floor_divide_t : promoting_operator<floor_divide_t> {
  static constexpr auto op_name = "floor_divide";
} floor_divide{};
/// Remainder of x / y with the sign of x.
inline constexpr struct fmod_t : promoting_operator<fmod_t> {
  static constexpr auto op_name = "fmod";
} fmod{};
/// Remainder of x / y with the sign of y.
inline constexpr struct remainder_t : promoting_operator<remainder_t> {
  static constexpr auto op_name = "remainder";
} remainder{};
/// Next floating-point number after x in the direction of y, or y if both are equal. Integers are refused.
inline constexpr struct nextafter_t : promoting_operator<nextafter_t> {
  static constexpr auto op_name = "nextafter";
} nextafter{};
/// Exponent e of x = m 2^e with 0.5 <= |m| < 1, in the dtype of x; 0 if x is 0 or not finite. Integers are refused.
inline constexpr struct binary_exponent_t : promoting_operator<binary_exponent_t> {
  static constexpr auto op_name = "binary_exponent";
} binary_exponent{};

namespace detail {
template <class Tag, int Arity>
struct of_numbers : of_some_dtypes<Tag, Arity> {
  static constexpr bool takes(dtype t) { return t != dtype::bool_; }
};
template <class Tag>
struct of_whole_parts : of_numbers<Tag, 1> {
  static constexpr bool differentiable = false;
};
template <class Tag, int Arity>
struct of_floats : of_some_dtypes<Tag, Arity> {
  static constexpr bool differentiable = false;
  static constexpr bool takes(dtype t) { return is_floating(t); }
};
} // namespace detail

template <>
struct rules<floor_t> : detail::of_whole_parts<floor_t> {
  static constexpr operator_text cpp{"kernel::floor($0)"};
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Floor";
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::floor(x); }
};
template <>
struct rules<ceil_t> : detail::of_whole_parts<ceil_t> {
  static constexpr operator_text cpp{"kernel::ceil($0)"};
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Ceil";
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::ceil(x); }
};
template <>
struct rules<trunc_t> : detail::of_whole_parts<trunc_t> {
  static constexpr operator_text cpp{"kernel::trunc($0)"};
  static constexpr bool integer_lanes = true;
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::trunc(x); }
};
template <>
struct rules<round_half_even_t> : detail::of_whole_parts<round_half_even_t> {
  static constexpr operator_text cpp{"kernel::round($0)"};
  static constexpr bool integer_lanes = true;
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::round(x); }
};
template <>
struct rules<floor_divide_t> : detail::of_numbers<floor_divide_t, 2> {
  static constexpr operator_text cpp{"kernel::floor_divide($0, $1)"};
  static constexpr bool differentiable = false;
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::floor_divide(x, y); }
};
template <>
struct rules<fmod_t> : detail::of_numbers<fmod_t, 2> {
  static constexpr operator_text cpp{"kernel::fmod($0, $1)"};
  static constexpr saved_values saved{{0, saved_values::operand(0) | saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::fmod(x, y); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const& x, auto const& y) { return neg(trunc(div(x, y))); }
};
template <>
struct rules<remainder_t> : detail::of_numbers<remainder_t, 2> {
  static constexpr operator_text cpp{"kernel::remainder($0, $1)"};
  static constexpr saved_values saved{{0, saved_values::operand(0) | saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::remainder(x, y); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const& x, auto const& y) { return neg(floor_divide(x, y)); }
};
template <>
struct rules<nextafter_t> : detail::of_floats<nextafter_t, 2> {
  static constexpr char const* c99 = "nextafter$F($0, $1)";
  static constexpr bool of_own_dtype = true; // a neighbour in float32 would round back to x itself
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::neighbour(x, y); }
};
template <>
struct rules<binary_exponent_t> : detail::of_floats<binary_exponent_t, 1> {
  static constexpr char const* c99 = "kernel::binary_exponent($0)";
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::binary_exponent(x); }
};

/// Fractional part of x, with the sign of x. Integers are refused.
inline constexpr struct frac_t : composite_operator<frac_t> {
  static constexpr auto op_name = "frac";
  template <value X>
  static constexpr auto body(X const& x) {
    detail::needs_floating<frac_t>(x);
    return sub(x, trunc(x));
  }
} frac{};
/// x rounded to a number of decimals, ties to even; negative numbers of decimals round to tens, hundreds, ...
/// (`torch.round`).
inline constexpr struct round_t : composite_operator<round_t> {
  static constexpr auto op_name = "round";
  template <value X>
  static constexpr auto body(X const& x, int decimals = 0) {
    double scale = 1;
    for (int k = 0; k < (decimals < 0 ? -decimals : decimals); ++k) scale *= 10;
    if (decimals != 0) detail::needs_floating<round_t>(x);
    auto const scaled = [&](auto const& v) {
      return decimals > 0   ? div(round_half_even(mul(v, scale)), scale)
             : decimals < 0 ? mul(round_half_even(div(v, scale)), scale)
                            : mul(round_half_even(v), scale);
    };
    return choose(detail::is_floating_fact(x), scaled, detail::identity, x);
  }
} round{};
/// Quotient rounded towards 0 (`torch.div` with `rounding_mode='trunc'`).
inline constexpr struct trunc_divide_t : composite_operator<trunc_divide_t> {
  static constexpr auto op_name = "trunc_divide";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    auto const of_floats = [](auto const& u, auto const& v) { return trunc(div(u, v)); };
    auto const of_one_type = [](auto const& u, auto const& v) { // exact, since the remainder has the sign of u
      return floor_divide(sub(u, fmod(u, v)), v);
    };
    auto const of_integers = [&](auto const& u, auto const& v) { return detail::in_common_type(of_one_type, u, v); };
    auto const floats = on_dims(
        [](dims const& s, dims const& t) {
          return dims{is_floating(static_cast<dtype>(s[0])) || is_floating(static_cast<dtype>(t[0]))};
        },
        type_fact(x), type_fact(y));
    return choose(same_fact(floats, ints<1>{}), of_floats, of_integers, x, y);
  }
} trunc_divide{};
/// Mantissa m and exponent e (int32) of x = m 2^e with 0.5 <= |m| < 1, as a pair (`torch.frexp`).
inline constexpr struct frexp_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    auto const e = binary_exponent(x);
    auto const half = trunc(mul(e, 0.5)); // two factors, neither of which overflows
    auto const m = mul(mul(x, pow(2.0, neg(half))), pow(2.0, sub(half, e)));
    return std::pair(m, to(e, ints<static_cast<index_t>(dtype::int32)>{}));
  }
} frexp{};

} // namespace varve
