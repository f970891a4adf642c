// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/traits.hpp>

/// @file
/// Mathematical functions under their C++ names. `using std::sin; sin(x)` calls varve's function for tensors, traced
/// values and values seen through transforms, by argument-dependent lookup, and `std::sin` for numbers. The same text
/// thus works for numbers and values, as with Ceres and autodiff. The functions have their own namespace, because in
/// `varve` the same names are function objects.
namespace varve {

struct abs_t;
struct exp_t;
struct expm1_t;
struct exp2_t;
struct log_t;
struct log1p_t;
struct log2_t;
struct log10_t;
struct sqrt_t;
struct pow_t;
struct sin_t;
struct cos_t;
struct cosh_t;
struct tanh_t;
struct acosh_t;
struct erf_t;
struct hypot_t;
struct copysign_t;
struct maximum_t;
struct minimum_t;
struct fmax_t;
struct fmin_t;
struct isnan_t;
struct isinf_t;
struct isfinite_t;
struct div_t;
struct asin_t;
struct acos_t;
struct atan_t;
struct sinh_t;
struct asinh_t;
struct atanh_t;
struct floor_t;
struct ceil_t;
struct round_t;
struct trunc_t;
struct erfc_t;
struct lgamma_t;
struct atan2_t;
struct fmod_t;
struct remainder_t;

namespace math {
/// A base class of types, or of one of their template arguments, for which the functions of this namespace are found.
struct functions {};

/// Calls a function whose header varve.hpp does not include.
template <class Tag, class... X>
constexpr auto special(X const&... x) {
  using T = dependent<Tag, X...>;
  constexpr bool here = requires { sizeof(T); };
  static_assert(here, "varve: this function stands beside the umbrella: include varve/special.hpp");
  if constexpr (here) return T{}(x...);
  else return nth<0>(x...);
}

template <varve_value X>
constexpr auto abs(X const& x) {
  return dependent<abs_t, X>{}(x);
}
template <varve_value X>
constexpr auto fabs(X const& x) {
  return dependent<abs_t, X>{}(x);
}
template <varve_value X>
constexpr auto exp(X const& x) {
  return dependent<exp_t, X>{}(x);
}
template <varve_value X>
constexpr auto exp2(X const& x) {
  return dependent<exp2_t, X>{}(x);
}
template <varve_value X>
constexpr auto expm1(X const& x) {
  return dependent<expm1_t, X>{}(x);
}
template <varve_value X>
constexpr auto log(X const& x) {
  return dependent<log_t, X>{}(x);
}
template <varve_value X>
constexpr auto log1p(X const& x) {
  return dependent<log1p_t, X>{}(x);
}
template <varve_value X>
constexpr auto log2(X const& x) {
  return dependent<log2_t, X>{}(x);
}
template <varve_value X>
constexpr auto log10(X const& x) {
  return dependent<log10_t, X>{}(x);
}
template <varve_value X>
constexpr auto sqrt(X const& x) {
  return dependent<sqrt_t, X>{}(x);
}
template <varve_value X>
constexpr auto sin(X const& x) {
  return dependent<sin_t, X>{}(x);
}
template <varve_value X>
constexpr auto cos(X const& x) {
  return dependent<cos_t, X>{}(x);
}
template <varve_value X>
constexpr auto asin(X const& x) {
  return special<asin_t>(x);
}
template <varve_value X>
constexpr auto acos(X const& x) {
  return special<acos_t>(x);
}
template <varve_value X>
constexpr auto atan(X const& x) {
  return special<atan_t>(x);
}
template <varve_value X>
constexpr auto sinh(X const& x) {
  return special<sinh_t>(x);
}
template <varve_value X>
constexpr auto asinh(X const& x) {
  return special<asinh_t>(x);
}
template <varve_value X>
constexpr auto atanh(X const& x) {
  return special<atanh_t>(x);
}
template <varve_value X>
constexpr auto floor(X const& x) {
  return special<floor_t>(x);
}
template <varve_value X>
constexpr auto ceil(X const& x) {
  return special<ceil_t>(x);
}
template <varve_value X>
constexpr auto round(X const& x) {
  return special<round_t>(x);
}
template <varve_value X>
constexpr auto trunc(X const& x) {
  return special<trunc_t>(x);
}
template <varve_value X>
constexpr auto erfc(X const& x) {
  return special<erfc_t>(x);
}
template <varve_value X>
constexpr auto lgamma(X const& x) {
  return special<lgamma_t>(x);
}
template <varve_value X>
constexpr auto tan(X const& x) {
  return dependent<div_t, X>{}(sin(x), cos(x));
}
template <varve_value X>
constexpr auto cosh(X const& x) {
  return dependent<cosh_t, X>{}(x);
}
template <varve_value X>
constexpr auto tanh(X const& x) {
  return dependent<tanh_t, X>{}(x);
}
template <varve_value X>
constexpr auto acosh(X const& x) {
  return dependent<acosh_t, X>{}(x);
}
template <varve_value X>
constexpr auto erf(X const& x) {
  return dependent<erf_t, X>{}(x);
}
template <varve_value X>
constexpr auto isnan(X const& x) {
  return dependent<isnan_t, X>{}(x);
}
template <varve_value X>
constexpr auto isinf(X const& x) {
  return dependent<isinf_t, X>{}(x);
}
template <varve_value X>
constexpr auto isfinite(X const& x) {
  return dependent<isfinite_t, X>{}(x);
}
template <value X, value Y>
constexpr auto pow(X const& x, Y const& y) {
  return dependent<pow_t, X>{}(x, y);
}
template <value X, value Y>
constexpr auto atan2(X const& x, Y const& y) {
  return special<atan2_t>(x, y);
}
template <value X, value Y>
constexpr auto fmod(X const& x, Y const& y) {
  return special<fmod_t>(x, y);
}
template <value X, value Y>
constexpr auto remainder(X const& x, Y const& y) {
  return special<remainder_t>(x, y);
}
template <value X, value Y>
constexpr auto hypot(X const& x, Y const& y) {
  return dependent<hypot_t, X>{}(x, y);
}
template <value X, value Y>
constexpr auto copysign(X const& x, Y const& y) {
  return dependent<copysign_t, X>{}(x, y);
}
template <value X, value Y>
constexpr auto fmax(X const& x, Y const& y) {
  return dependent<fmax_t, X>{}(x, y);
}
template <value X, value Y>
constexpr auto fmin(X const& x, Y const& y) {
  return dependent<fmin_t, X>{}(x, y);
}
template <value X, value Y>
constexpr auto(max)(X const& x, Y const& y) {
  return dependent<maximum_t, X>{}(x, y);
}
template <value X, value Y>
constexpr auto(min)(X const& x, Y const& y) {
  return dependent<minimum_t, X>{}(x, y);
}
/// Returns the elementwise maximum. This overload for arguments of one type is more specialized than `std::max`.
template <varve_value X>
constexpr auto(max)(X const& x, X const& y) {
  return dependent<maximum_t, X>{}(x, y);
}
template <varve_value X>
constexpr auto(min)(X const& x, X const& y) {
  return dependent<minimum_t, X>{}(x, y);
}
} // namespace math

namespace detail {
template <class T>
constexpr void refuse_item() {
  static_assert(never<T>, "varve: item: a value seen through a transform is no plain number; compute with the value "
                          "itself, with detach(x) where no derivative should pass");
}
template <class T>
constexpr double refuse_double() {
  static_assert(never<T>,
                "varve: a value seen through a transform was taken for a plain double; write auto for double where it "
                "is declared (parameters and variables), and sin(x) with using std::sin, or varve::sin(x), for "
                "std::sin(x)");
  return 0;
}
} // namespace detail

} // namespace varve
