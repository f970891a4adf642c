// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/kernel/bessel.hpp>

/// @file
/// Bessel functions of orders 0 and 1, modified ones, and Airy's function. Integers give floating numbers.
namespace varve {

/// The modified Bessel function of the first kind of order 0.
inline constexpr struct i0_t : promoting_operator<i0_t> {
  static constexpr auto op_name = "i0";
} i0{};
/// ... of order 1.
inline constexpr struct i1_t : promoting_operator<i1_t> {
  static constexpr auto op_name = "special_i1";
} i1{};
/// e^-|x| i0(x).
inline constexpr struct i0e_t : promoting_operator<i0e_t> {
  static constexpr auto op_name = "special_i0e";
} i0e{};
/// e^-|x| i1(x).
inline constexpr struct i1e_t : promoting_operator<i1e_t> {
  static constexpr auto op_name = "special_i1e";
} i1e{};
/// The modified Bessel function of the second kind of order 0; infinite at 0, NaN below.
inline constexpr struct modified_bessel_k0_t : promoting_operator<modified_bessel_k0_t> {
  static constexpr auto op_name = "special_modified_bessel_k0";
} modified_bessel_k0{};
/// ... of order 1.
inline constexpr struct modified_bessel_k1_t : promoting_operator<modified_bessel_k1_t> {
  static constexpr auto op_name = "special_modified_bessel_k1";
} modified_bessel_k1{};
/// e^x K_0(x).
inline constexpr struct scaled_modified_bessel_k0_t : promoting_operator<scaled_modified_bessel_k0_t> {
  static constexpr auto op_name = "special_scaled_modified_bessel_k0";
} scaled_modified_bessel_k0{};
/// e^x K_1(x).
inline constexpr struct scaled_modified_bessel_k1_t : promoting_operator<scaled_modified_bessel_k1_t> {
  static constexpr auto op_name = "special_scaled_modified_bessel_k1";
} scaled_modified_bessel_k1{};
/// The Bessel function of the first kind of order 0.
inline constexpr struct bessel_j0_t : promoting_operator<bessel_j0_t> {
  static constexpr auto op_name = "special_bessel_j0";
} bessel_j0{};
/// ... of order 1.
inline constexpr struct bessel_j1_t : promoting_operator<bessel_j1_t> {
  static constexpr auto op_name = "special_bessel_j1";
} bessel_j1{};
/// The Bessel function of the second kind of order 0; minus infinity at 0, NaN below.
inline constexpr struct bessel_y0_t : promoting_operator<bessel_y0_t> {
  static constexpr auto op_name = "special_bessel_y0";
} bessel_y0{};
/// ... of order 1.
inline constexpr struct bessel_y1_t : promoting_operator<bessel_y1_t> {
  static constexpr auto op_name = "special_bessel_y1";
} bessel_y1{};
/// sin(x) / x.
inline constexpr struct spherical_bessel_j0_t : promoting_operator<spherical_bessel_j0_t> {
  static constexpr auto op_name = "special_spherical_bessel_j0";
} spherical_bessel_j0{};
/// Airy's function Ai. It has no derivative here.
inline constexpr struct airy_ai_t : promoting_operator<airy_ai_t> {
  static constexpr auto op_name = "special_airy_ai";
} airy_ai{};

namespace detail {
/// f(x) / x, of 0 its limit.
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
