// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/kernel/error_functions.hpp>

/// @file
/// Functions related to the error function. Integers give floating-point results.
namespace varve {

/// Complementary error function 1 - erf(x), without cancellation.
inline constexpr struct erfc_t : promoting_operator<erfc_t> {
  static constexpr auto op_name = "erfc";
} erfc{};
/// Scaled complementary error function e^(x^2) erfc(x), without overflow for positive x.
inline constexpr struct erfcx_t : promoting_operator<erfcx_t> {
  static constexpr auto op_name = "special_erfcx";
} erfcx{};
/// Inverse error function; infinite at -1 and 1, NaN beyond.
inline constexpr struct erfinv_t : promoting_operator<erfinv_t> {
  static constexpr auto op_name = "erfinv";
} erfinv{};
/// Inverse of the standard normal distribution function; infinite at 0 and 1, NaN beyond.
inline constexpr struct ndtri_t : promoting_operator<ndtri_t> {
  static constexpr auto op_name = "special_ndtri";
} ndtri{};
/// Logarithm of the standard normal distribution function, without underflow.
inline constexpr struct log_ndtr_t : promoting_operator<log_ndtr_t> {
  static constexpr auto op_name = "special_log_ndtr";
} log_ndtr{};

template <>
struct rules<erfc_t> : rule::pointwise<1, promotion::floating> {
  static constexpr char const* c99 = "erfc$F($0)";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::distribution::erfc_of(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) {
    return mul(exp(neg(mul(x, x))), -0x1.20dd750429b6dp0);
  }
};
template <>
struct rules<erfcx_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    constexpr bool single = kernel::distribution::halley_steps<decltype(x)> == 1;
    return kernel::in_double([](double a) { return kernel::distribution::erfcx(a, single); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const& x) {
    return sub(mul(mul(x, 2), y), 0x1.20dd750429b6dp0);
  }
};
template <>
struct rules<erfinv_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    constexpr int steps = kernel::distribution::halley_steps<decltype(x)>;
    return kernel::in_double([](double a) { return kernel::distribution::erfinv(a, steps); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) {
    return mul(exp(mul(y, y)), 0.88622692545275801365);
  }
};
template <>
struct rules<ndtri_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::distribution::ndtri(a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) {
    return mul(exp(mul(mul(y, y), 0.5)), 2.50662827463100050242);
  }
};
template <>
struct rules<log_ndtr_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    constexpr bool single = kernel::distribution::halley_steps<decltype(x)> == 1;
    return kernel::in_double([](double a) { return kernel::distribution::log_ndtr(a, single); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) {
    return mul(reciprocal(erfcx(mul(x, -0.70710678118654752440))), 0.79788456080286535588);
  }
};

} // namespace varve
