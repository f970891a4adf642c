// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/logical.hpp>
#include <varve/op/argmax.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/sqrt.hpp>
#include <varve/op/sum.hpp>

#include <tuple>

namespace varve {

namespace detail {
/// Returns the squares of the distances from the mean.
template <value X, class A>
constexpr auto squares_about_mean(X const& x, A const& axes) {
  return square(sub(x, mean(x, axes, keepdim)));
}
/// Returns the square root of nonnegative numbers. The derivative is 0 where the root is 0.
template <value S>
constexpr auto root(S const& s) {
  auto const zero = eq(s, 0);
  return where(zero, mul(s, 0), sqrt(where(zero, 1, s)));
}
} // namespace detail

/// `var(x, axes, correction = 1, keepdim)`: the variance along axes (`torch.var`). The sum of squared distances from
/// the mean is divided by the count minus `correction`, but at least by 0. Empty axes, `ints<>{}`, stand for all axes.
/// Integers are refused.
inline constexpr struct var_t : composite_operator<var_t> {
  static constexpr auto op_name = "var";
  template <value X, class A = ints<>, class K = ints<0>>
  static constexpr auto body(X const& x, A const& axes = {}, double correction = 1, K const& keep = {}) {
    detail::needs_floating<var_t>(x);
    auto const s = sum(detail::squares_about_mean(x, axes), axes, keep);
    auto const n = to(detail::count_reduced(x, to_dims(shape_of(x)), to_dims(shape_of(s))), type_fact(x));
    return div(s, maximum(sub(n, correction), 0.0));
  }
} var{};
/// The standard deviation: the square root of `var`. Its derivative is 0 where all elements are equal.
inline constexpr struct std_t : composite_operator<std_t> {
  static constexpr auto op_name = "std";
  template <value X, class A = ints<>, class K = ints<0>>
  static constexpr auto body(X const& x, A const& axes = {}, double correction = 1, K const& keep = {}) {
    return detail::root(var(x, axes, correction, keep));
  }
} std_dev{};

/// The sum of all elements that are not NaN.
inline constexpr struct nansum_t : composite_operator<nansum_t> {
  static constexpr auto op_name = "nansum";
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    return sum(where(ne(x, x), 0, x), at...);
  }
} nansum{};
/// The mean of all elements that are not NaN.
inline constexpr struct nanmean_t : composite_operator<nanmean_t> {
  static constexpr auto op_name = "nanmean";
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    detail::needs_floating<nanmean_t>(x);
    return div(nansum(x, at...), to(sum(eq(x, x), at...), type_fact(x)));
  }
} nanmean{};

/// Index (int64) of the first smallest element, over all elements or along one axis.
inline constexpr struct argmin_t : composite_operator<argmin_t> {
  static constexpr auto op_name = "argmin";
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    auto const turned = [&](auto const& v) { return argmax(neg(v), at...); };
    auto const of_integers = [&](auto const& v) { // -1 - v does not overflow
      return argmax(sub(-1, to(v, ints<static_cast<index_t>(dtype::int64)>{})), at...);
    };
    return choose(detail::is_floating_fact(x), turned, of_integers, x);
  }
} argmin{};

namespace detail {
/// Returns extrema along one axis and their indices. All of the derivative goes to the selected element.
template <value X, value I, class A, class K>
constexpr auto picked(X const& x, I const& at, A const& axis, K const& keep) {
  auto const with = [](dims const& s, dims const& a) {
    dims r = s;
    if (r.n) r[wrap_axis(a[0], r.n)] = 1;
    return r;
  };
  auto const wide = on_dims(with, shape_of(x), axis);
  auto const y = gather(x, axis, reshape(at, wide));
  auto const shape = on_dims(
      [](dims const& kept, dims const& s, dims const& a, dims const& k) {
        dims r = kept;
        if (k[0] == 0 && s.n) r.erase(wrap_axis(a[0], s.n));
        return r;
      },
      wide, shape_of(x), axis, keep);
  return std::pair(reshape(y, shape), reshape(at, shape));
}
} // namespace detail
/// The greatest element along an axis and its index, as a pair (`torch.max` with a dim). All of the derivative goes to
/// this element.
inline constexpr struct max_along_t {
  template <value X, class A, class K = ints<0>>
  constexpr auto operator()(X const& x, A const& axis, K const& keep = {}) const {
    auto const a = detail::as_fact(axis);
    return detail::picked(x, argmax(x, a, detail::as_fact(keep)), a, detail::as_fact(keep));
  }
} max_along{};
/// The smallest element along an axis and its index, as a pair (`torch.min` with a dim).
inline constexpr struct min_along_t {
  template <value X, class A, class K = ints<0>>
  constexpr auto operator()(X const& x, A const& axis, K const& keep = {}) const {
    auto const a = detail::as_fact(axis);
    return detail::picked(x, argmin(x, a, detail::as_fact(keep)), a, detail::as_fact(keep));
  }
} min_along{};

} // namespace varve
