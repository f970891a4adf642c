// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/kernel/bessel.hpp>

/// @file
/// Bessel functions and modified Bessel functions of orders 0 and 1, and Airy's function. Integers give floating-point
/// results.
namespace varve {

/// Modified Bessel function I_0 of the first kind, order 0.
inline constexpr struct i0_t : promoting_operator<i0_t> {
  static constexpr auto op_name = "i0";
} i0{};
/// Modified Bessel function I_1 of the first kind, order 1.
inline constexpr struct i1_t : promoting_operator<i1_t> {
  static constexpr auto op_name = "special_i1";
} i1{};
/// Scaled modified Bessel function e^-|x| I_0(x).
inline constexpr struct i0e_t : promoting_operator<i0e_t> {
  static constexpr auto op_name = "special_i0e";
} i0e{};
/// Scaled modified Bessel function e^-|x| I_1(x).
inline constexpr struct i1e_t : promoting_operator<i1e_t> {
  static constexpr auto op_name = "special_i1e";
} i1e{};
/// Modified Bessel function K_0 of the second kind, order 0; infinite at 0, NaN below.
inline constexpr struct modified_bessel_k0_t : promoting_operator<modified_bessel_k0_t> {
  static constexpr auto op_name = "special_modified_bessel_k0";
} modified_bessel_k0{};
/// Modified Bessel function K_1 of the second kind, order 1; infinite at 0, NaN below.
inline constexpr struct modified_bessel_k1_t : promoting_operator<modified_bessel_k1_t> {
  static constexpr auto op_name = "special_modified_bessel_k1";
} modified_bessel_k1{};
/// Scaled modified Bessel function e^x K_0(x).
inline constexpr struct scaled_modified_bessel_k0_t : promoting_operator<scaled_modified_bessel_k0_t> {
  static constexpr auto op_name = "special_scaled_modified_bessel_k0";
} scaled_modified_bessel_k0{};
/// Scaled modified Bessel function e^x K_1(x).
inline constexpr struct scaled_modified_bessel_k1_t : promoting_operator<scaled_modified_bessel_k1_t> {
  static constexpr auto op_name = "special_scaled_modified_bessel_k1";
} scaled_modified_bessel_k1{};
/// Bessel function J_0 of the first kind, order 0.
inline constexpr struct bessel_j0_t : promoting_operator<bessel_j0_t> {
  static constexpr auto op_name = "special_bessel_j0";
} bessel_j0{};
/// Bessel function J_1 of the first kind, order 1.
inline constexpr struct bessel_j1_t : promoting_operator<bessel_j1_t> {
  static constexpr auto op_name = "special_bessel_j1";
} bessel_j1{};
/// Bessel function Y_0 of the second kind, order 0; minus infinity at 0, NaN below.
inline constexpr struct bessel_y0_t : promoting_operator<bessel_y0_t> {
  static constexpr auto op_name = "special_bessel_y0";
} bessel_y0{};
/// Bessel function Y_1 of the second kind, order 1; minus infinity at 0, NaN below.
inline constexpr struct bessel_y1_t : promoting_operator<bessel_y1_t> {
  static constexpr auto op_name = "special_bessel_y1";
} bessel_y1{};
/// Spherical Bessel function j_0(x) = sin(x) / x.
inline constexpr struct spherical_bessel_j0_t : promoting_operator<spherical_bessel_j0_t> {
  static constexpr auto op_name = "special_spherical_bessel_j0";
} spherical_bessel_j0{};
/// Airy's function Ai. It has no derivative.
inline constexpr struct airy_ai_t : promoting_operator<airy_ai_t> {
  static constexpr auto op_name = "special_airy_ai";
} airy_ai{};

namespace detail {
/// Returns f(x) / x, and `limit` where x is 0.
template <value F, value X>
constexpr auto quotient_at(F const& f, X const& x, double limit) {
  auto const zero = eq(x, 0);
  return where(zero, limit, div(f, where(zero, 1, x)));
}
} // namespace detail

template <>
struct rules<i0_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::bessel::i_of<0>(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return i1(x); }
};
template <>
struct rules<i1_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::bessel::i_of<1>(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) {
    return sub(i0(x), detail::quotient_at(y, x, 0.5));
  }
};
template <>
struct rules<i0e_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::scaled_i(0, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) { return sub(i1e(x), mul(sign(x), y)); }
};
template <>
struct rules<i1e_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::scaled_i(1, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) {
    return sub(i0e(x), add(mul(sign(x), y), detail::quotient_at(y, x, 0.5)));
  }
};
template <>
struct rules<modified_bessel_k0_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::k(0, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return neg(modified_bessel_k1(x)); }
};
template <>
struct rules<modified_bessel_k1_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::k(1, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) {
    return neg(add(modified_bessel_k0(x), div(y, x)));
  }
};
template <>
struct rules<scaled_modified_bessel_k0_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::scaled_k(0, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) { return sub(y, scaled_modified_bessel_k1(x)); }
};
template <>
struct rules<scaled_modified_bessel_k1_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::scaled_k(1, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) {
    return sub(sub(y, scaled_modified_bessel_k0(x)), div(y, x));
  }
};
template <>
struct rules<bessel_j0_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::j(0, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return neg(bessel_j1(x)); }
};
template <>
struct rules<bessel_j1_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::j(1, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) {
    return sub(bessel_j0(x), detail::quotient_at(y, x, 0.5));
  }
};
template <>
struct rules<bessel_y0_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::y(0, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return neg(bessel_y1(x)); }
};
template <>
struct rules<bessel_y1_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::y(1, a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) { return sub(bessel_y0(x), div(y, x)); }
};
template <>
struct rules<spherical_bessel_j0_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::spherical_j0(a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) {
    return detail::quotient_at(sub(cos(x), y), x, 0.0);
  }
};
template <>
struct rules<airy_ai_t> : rule::elementwise<1, promotion::floating> {
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::bessel::airy(a); }, x);
  }
};

} // namespace varve
