// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/kernel/gamma.hpp>

/// @file
/// The gamma function and related functions. Integers give floating-point results.
namespace varve {

/// Logarithm of |Gamma(x)|; infinite at 0, -1, ...
inline constexpr struct lgamma_t : promoting_operator<lgamma_t> {
  static constexpr auto op_name = "lgamma";
} lgamma{};
/// Derivative of log Gamma(x); NaN at -1, -2, ...
inline constexpr struct digamma_t : promoting_operator<digamma_t> {
  static constexpr auto op_name = "digamma";
} digamma{};
/// Hurwitz zeta function: the sum of (q + k)^-x over k >= 0. It is infinite at the poles, and NaN for x < 1 and where
/// it is not real. Differentiable in q only.
inline constexpr struct zeta_t : promoting_operator<zeta_t> {
  static constexpr auto op_name = "special_zeta";
} zeta{};
/// Regularized lower incomplete gamma function for non-negative a and x: the integral of t^(a-1) e^-t from 0 to x,
/// divided by Gamma(a). Differentiable in x only.
inline constexpr struct igamma_t : promoting_operator<igamma_t> {
  static constexpr auto op_name = "igamma";
} igamma{};
/// Regularized upper incomplete gamma function for non-negative a and x: the integral of t^(a-1) e^-t from x to
/// infinity, divided by Gamma(a). Differentiable in x only.
inline constexpr struct igammac_t : promoting_operator<igammac_t> {
  static constexpr auto op_name = "igammac";
} igammac{};

template <>
struct rules<lgamma_t> : rule::pointwise<1, promotion::floating> {
  static constexpr char const* c99 = "lgamma$F($0)";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::gamma::log_of(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return digamma(x); }
};
/// Rules of `zeta`: the derivative in q is -x zeta(x + 1, q).
template <>
struct rules<zeta_t> : rule::elementwise<2, promotion::floating> {
  static constexpr bool is_slow = true;
  static constexpr saved_values saved{{0, saved_values::operand(0) | saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto x, auto q) {
    return kernel::in_double([](double a, double b) { return kernel::gamma::zeta(a, b); }, x, q);
  }
  static constexpr auto partial(auto const& x, auto const& q) { return neg(mul(x, zeta(add(x, 1), q))); }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const&, value auto const& d, value auto const& y, value auto const& x,
                            value auto const& q) {
    return detail::match(mul(partial(x, q), d), y);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const& g, value auto const&, value auto const& x,
                            value auto const& q) {
    return detail::unmatch(mul(g, partial(x, q)), q);
  }
};
template <>
struct rules<digamma_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::in_double([](double a) { return kernel::gamma::digamma(a); }, x);
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return zeta(2, x); }
};

namespace detail {
template <bool Upper>
struct incomplete_gamma : rule::elementwise<2, promotion::floating> {
  static constexpr bool is_slow = true;
  static constexpr saved_values saved{{0, saved_values::operand(0) | saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto a, auto x) {
    return kernel::in_double([](double s, double t) { return kernel::gamma::incomplete(s, t, Upper); }, a, x);
  }
  static constexpr auto partial(auto const& a, auto const& x) {
    auto const density = exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)));
    if constexpr (Upper) return neg(density);
    else return density;
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const&, value auto const& d, value auto const& y, value auto const& a,
                            value auto const& x) {
    return match(mul(partial(a, x), d), y);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const& g, value auto const&, value auto const& a,
                            value auto const& x) {
    return unmatch(mul(g, partial(a, x)), x);
  }
};
} // namespace detail
template <>
struct rules<igamma_t> : detail::incomplete_gamma<false> {};
template <>
struct rules<igammac_t> : detail::incomplete_gamma<true> {};

/// Derivative of order n of `digamma`, n >= 0 (`torch.polygamma`).
inline constexpr struct polygamma_t : composite_operator<polygamma_t> {
  static constexpr auto op_name = "polygamma";
  template <value X>
  static constexpr auto body(index_t n, X const& x) {
    if (n < 0) refuse::argument_is_invalid(op_name, "the order must not be negative");
    if (n == 0) return add(digamma(x), 0);
    double factor = n % 2 ? 1 : -1;
    for (index_t k = 2; k <= n; ++k) factor *= static_cast<double>(k);
    return mul(zeta(n + 1, x), factor);
  }
} polygamma{};
/// Logarithm of the multivariate gamma function of dimension p (`torch.mvlgamma`).
inline constexpr struct mvlgamma_t : composite_operator<mvlgamma_t> {
  static constexpr auto op_name = "mvlgamma";
  template <value X>
  static constexpr auto body(X const& x, index_t p) {
    if (p < 1) refuse::argument_is_invalid(op_name, "the dimension is at least 1");
    auto sum = add(lgamma(x), static_cast<double>(p * (p - 1)) / 4 * 1.14472988584940017414);
    for (index_t k = 1; k < p; ++k) sum = add(sum, lgamma(sub(x, static_cast<double>(k) / 2)));
    return sum;
  }
} mvlgamma{};

} // namespace varve
