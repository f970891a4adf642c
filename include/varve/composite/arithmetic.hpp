// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/logical.hpp>
#include <varve/composite/xlogy.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/erf.hpp>
#include <varve/op/expm1.hpp>
#include <varve/op/gelu.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/pow.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/sin.hpp>
#include <varve/op/sqrt.hpp>

/// @file
/// Elementwise functions composed of other operators.
namespace varve {

namespace detail {
/// Converts integers and bool to the default dtype, for functions whose intermediate steps need floating numbers.
template <value X>
constexpr auto as_floating(X const& x) {
  return choose(
      is_floating_fact(x), identity, [](auto const& v) { return to(v, ints<static_cast<index_t>(default_dtype)>{}); },
      x);
}
} // namespace detail

/// x + value * a * b, in the common dtype of x, a and b.
inline constexpr struct addcmul_t : composite_operator<addcmul_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "addcmul";
  template <value X, value A, value B, value V = int>
  static constexpr auto body(X const& x, A const& a, B const& b, V const& value = 1) {
    if (dtype_of(x) == dtype::bool_ && dtype_of(a) == dtype::bool_ && dtype_of(b) == dtype::bool_)
      refuse::dtype_is_not_supported(op_name, name(dtype_of(x)));
    auto const of_one_type = [&](auto const& u, auto const& v, auto const& w) {
      auto const scaled = [](auto const& p, auto const& n) { return mul(p, n); };
      return add(u, detail::with_number_in_dtype_of(mul(v, w), value, scaled));
    };
    return detail::in_common_type(of_one_type, x, a, b);
  }
} addcmul{};
/// x + value * a / b, in the common dtype of x, a and b. Refused if neither a nor b is floating.
inline constexpr struct addcdiv_t : composite_operator<addcdiv_t> {
  static constexpr auto op_name = "addcdiv";
  template <value X, value A, value B, value V = int>
  static constexpr auto body(X const& x, A const& a, B const& b, V const& value = 1) {
    if (!is_floating(dtype_of(a)) && !is_floating(dtype_of(b)))
      refuse::dtype_is_not_supported(op_name, name(dtype_of(b)));
    auto const of_one_type = [&](auto const& u, auto const& v, auto const& w) { return add(u, mul(div(v, w), value)); };
    return detail::in_common_type(of_one_type, x, a, b);
  }
} addcdiv{};
/// x + weight * (y - x), computed from the nearer of x and y.
inline constexpr struct lerp_t : composite_operator<lerp_t> {
  static constexpr auto op_name = "lerp";
  template <value X, value Y, value W>
  static constexpr auto body(X const& x, Y const& y, W const& weight) {
    if (dtype_of(x) != dtype_of(y)) refuse::dtypes_differ("lerp", name(dtype_of(x)), name(dtype_of(y)));
    auto const d = sub(y, x);
    return where(lt(abs(weight), 0.5), add(x, mul(weight, d)), sub(y, mul(d, sub(1, weight))));
  }
} lerp{};

namespace detail {
/// Returns the extremum of two values, or the other value if one is NaN.
template <value X, value Y, class F>
constexpr auto unless_nan(X const& x, Y const& y, F const& f) {
  return where(ne(x, x), y, where(ne(y, y), x, f(x, y)));
}
} // namespace detail
/// The greater of two values; NaN only if both are NaN.
inline constexpr struct fmax_t : composite_operator<fmax_t> {
  static constexpr auto op_name = "fmax";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return detail::unless_nan(x, y, [](auto const& u, auto const& v) { return where(ge(u, v), u, v); });
  }
} fmax{};
/// The smaller of two values; NaN only if both are NaN.
inline constexpr struct fmin_t : composite_operator<fmin_t> {
  static constexpr auto op_name = "fmin";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return detail::unless_nan(x, y, [](auto const& u, auto const& v) { return where(le(u, v), u, v); });
  }
} fmin{};

/// sin(pi x) / (pi x), and 1 at 0. The first two derivatives at 0 are correct.
inline constexpr struct sinc_t : composite_operator<sinc_t> {
  static constexpr auto op_name = "sinc";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const z = mul(x, 3.1415926535897932384626433832795);
    auto const zero = eq(x, 0);
    auto const known = where(zero, 1, z);
    return where(zero, sub(1, mul(mul(z, z), 1 / 6.)), div(sin(known), known));
  }
} sinc{};
/// (e^x + e^-x) / 2.
inline constexpr struct cosh_t : composite_operator<cosh_t> {
  static constexpr complex_rule of_complex = complex_rule::cosh;
  static constexpr auto op_name = "cosh";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const z = detail::as_floating(x);
    return add(mul(exp(z), 0.5), mul(exp(neg(z)), 0.5));
  }
} cosh{};
namespace detail {
/// For greater numbers z, z^2 + 1 and z^2 - 1 round to z^2; there inverse hyperbolic functions are log(2 z).
inline constexpr double nothing_beside_square = 1e10;
template <value Z, value R>
constexpr auto area_of_hyperbola(Z const& z, R const& usual) {
  auto const is_far = gt(z, nothing_beside_square); // the sum within `usual` may overflow there
  return where(is_far, add(log(where(is_far, z, 1)), 0.69314718055994530941723212145818), usual);
}
} // namespace detail
/// Inverse hyperbolic cosine: log(x + sqrt(x^2 - 1)), NaN below 1.
inline constexpr struct acosh_t : composite_operator<acosh_t> {
  static constexpr complex_rule of_complex = complex_rule::acosh;
  static constexpr auto op_name = "acosh";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const z = detail::as_floating(x);
    auto const known = where(gt(z, detail::nothing_beside_square), 1.5, z), d = sub(known, 1);
    // two roots: the root of the product has no derivative at 1, where that of acosh is infinite
    return detail::area_of_hyperbola(z, log1p(add(d, mul(sqrt(d), sqrt(add(known, 1))))));
  }
} acosh{};
/// 2^x.
inline constexpr struct exp2_t : composite_operator<exp2_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "exp2";
  template <value X>
  static constexpr auto body(X const& x) {
    return pow(2.0, x);
  }
} exp2{};
/// Logarithm to base 2.
inline constexpr struct log2_t : composite_operator<log2_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "log2";
  template <value X>
  static constexpr auto body(X const& x) {
    return mul(log(x), 1.4426950408889634073599246810019);
  }
} log2{};
/// Logarithm to base 10.
inline constexpr struct log10_t : composite_operator<log10_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "log10";
  template <value X>
  static constexpr auto body(X const& x) {
    return mul(log(x), 0.43429448190325182765112891891661);
  }
} log10{};

namespace detail {
/// Returns log(e^(scale x) + e^(scale y)) / scale without overflow. Equal infinities yield that infinity.
template <value X, value Y>
constexpr auto log_of_sum(X const& x, Y const& y, double scale) {
  auto const same = mul(eq(x, y), isinf(x));
  auto const high = where(ge(x, y), x, y), low = where(ge(x, y), y, x);
  auto const d = where(same, 0, sub(low, high));
  auto const r = add(high, div(log1p(exp(mul(d, scale))), scale));
  return where(same, x, where(ne(x, x), x, where(ne(y, y), y, r)));
}
} // namespace detail
/// log(e^x + e^y) without overflow.
inline constexpr struct logaddexp_t : composite_operator<logaddexp_t> {
  static constexpr auto op_name = "logaddexp";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return detail::log_of_sum(x, y, 1.0);
  }
} logaddexp{};
/// log2(2^x + 2^y) without overflow.
inline constexpr struct logaddexp2_t : composite_operator<logaddexp2_t> {
  static constexpr auto op_name = "logaddexp2";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return detail::log_of_sum(x, y, 0.69314718055994530941723212145818);
  }
} logaddexp2{};

/// sqrt(x^2 + y^2) without overflow. Refused if neither x nor y is floating.
inline constexpr struct hypot_t : composite_operator<hypot_t> {
  static constexpr auto op_name = "hypot";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    if (!is_floating(dtype_of(x)) && !is_floating(dtype_of(y)))
      refuse::dtype_is_not_supported(op_name, name(dtype_of(x)));
    return detail::in_common_type([](auto const& a, auto const& b) { return of_one_type(a, b); }, x, y);
  }

private:
  template <value X, value Y>
  static constexpr auto of_one_type(X const& x, Y const& y) {
    auto const u = abs(x);
    auto const v = abs(y);
    auto const high = detach(maximum(u, v)); // only a scale: its derivative does not matter
    auto const scale = where(mul(gt(high, 0), isfinite(high)), high, 1);
    auto const r = mul(scale, sqrt(add(square(div(x, scale)), square(div(y, scale)))));
    auto const infinite = mul(ne(r, r), add(isinf(x), isinf(y))); // even if the other operand is NaN
    return where(infinite, std::numeric_limits<double>::infinity(), r);
  }
} hypot{};
/// x * 2^y.
inline constexpr struct ldexp_t : composite_operator<ldexp_t> {
  static constexpr auto op_name = "ldexp";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return mul(x, pow(2.0, y));
  }
} ldexp{};
/// x^y, computed in float64.
inline constexpr struct float_power_t : composite_operator<float_power_t> {
  static constexpr auto op_name = "float_power";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    using wide = ints<static_cast<index_t>(dtype::float64)>;
    return pow(to(x, wide{}), to(y, wide{}));
  }
} float_power{};
/// -x log(x); 0 at 0, and minus infinity below.
inline constexpr struct entr_t : composite_operator<entr_t> {
  static constexpr auto op_name = "special_entr";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const positive = gt(x, 0), zero = eq(x, 0);
    auto const known = where(positive, x, 1);
    auto const at_zero = sqrt(where(zero, add(x, 0), 1)); // also 0, with infinite slope as well
    auto const rest = where(zero, at_zero, where(ne(x, x), x, -std::numeric_limits<double>::infinity()));
    return where(positive, neg(mul(known, log(known))), rest);
  }
} entr{};
/// The Heaviside step function: 0 where x is negative or NaN, 1 where it is positive, the element of `values` where it
/// is 0 (`torch.heaviside`). The dtypes must be the same.
inline constexpr struct heaviside_t : composite_operator<heaviside_t> {
  static constexpr auto op_name = "heaviside";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& values) {
    if (dtype_of(x) != dtype_of(values)) refuse::dtypes_differ(op_name, name(dtype_of(x)), name(dtype_of(values)));
    return where(eq(x, 0), values, to(gt(x, 0), type_fact(x)));
  }
} heaviside{};
/// log(x / (1 - x)); NaN outside [0, 1], as is its derivative. With `eps`, x is limited to [eps, 1 - eps] first
/// (`torch.logit`).
inline constexpr struct logit_t : composite_operator<logit_t> {
  static constexpr auto op_name = "logit";
  template <value X, class E = none_t>
  static constexpr auto body(X const& x, E const& eps = {}) {
    auto const z = detail::as_floating(x);
    auto const of_inner = [](auto const& v) { return sub(log(v), log1p(neg(v))); };
    if constexpr (is_none<E>) {
      auto const y = of_inner(z);
      return where(maximum(lt(z, 0), gt(z, 1)), mul(y, std::numeric_limits<double>::quiet_NaN()), y);
    } else {
      double const least = static_cast<double>(eps), most = 1 - least;
      return of_inner(where(lt(z, least), least, where(gt(z, most), most, z)));
    }
  }
} logit{};
/// Replaces NaN and both infinities by numbers (`torch.nan_to_num`). By default NaN becomes 0 and infinities become the
/// greatest and the least finite number of the dtype. The derivative is 0 at replaced elements.
inline constexpr struct nan_to_num_t : composite_operator<nan_to_num_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "nan_to_num";
  template <value X, class P = none_t, class N = none_t>
  static constexpr auto body(X const& x, double nan = 0, P const& posinf = {}, N const& neginf = {}) {
    detail::needs_real(op_name, x);
    auto const real = [&](auto const& v) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      double high = detail::greatest_finite_of(dtype_of(v)), low = -high;
      if constexpr (!is_none<P>) high = static_cast<double>(posinf);
      if constexpr (!is_none<N>) low = static_cast<double>(neginf);
      return where(ne(v, v), nan, where(eq(v, infinity), high, where(eq(v, -infinity), low, v)));
    };
    return choose(detail::is_floating_fact(x), real, [](auto const& v) { return clone(v); }, x);
  }
} nan_to_num{};
/// The cumulative distribution function of the standard normal distribution.
inline constexpr struct ndtr_t : composite_operator<ndtr_t> {
  static constexpr auto op_name = "special_ndtr";
  template <value X>
  static constexpr auto body(X const& x) {
    return mul(add(erf(mul(x, 0.70710678118654752440084436210485)), 1), 0.5);
  }
} ndtr{};

} // namespace varve
