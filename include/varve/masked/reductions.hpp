// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/composite/norms.hpp>
#include <varve/composite/prod.hpp>
#include <varve/composite/statistics.hpp>
#include <varve/op/softmax.hpp>

#include <limits>

/// @file
/// Reductions of the elements where a bool mask is true (`torch.masked`). The mask broadcasts; `none` includes all
/// elements. Empty axes stand for all axes. Without elements the result is the neutral element: minus infinity for
/// `amax`, 0 for sums.
namespace varve::masked {

namespace detail {
using namespace varve::detail;
/// Returns x where the mask is true, otherwise an infinity; for integers, the least or greatest number of the dtype.
template <value X, value M>
constexpr auto filled(X const& x, M const& mask, bool low) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto const real = [&](auto const& v) { return where(mask, v, low ? -infinity : infinity); };
  auto const whole = [&](auto const& v) {
    dtype const t = dtype_of(v);
    index_t const end = t == dtype::bool_ ? !low : low ? least_of(t) : greatest_of(t);
    return where(mask, v, new_full(varve::detach(v), ints<>{}, end));
  };
  return choose(is_floating_fact(x), real, whole, x);
}
/// Applies `f` to the filled elements, or to all if there is no mask.
template <value X, class M, class F>
constexpr auto with(X const& x, M const& mask, bool low, F const& f) {
  if constexpr (is_none<M>) return f(x);
  else return f(filled(x, mask, low));
}
} // namespace detail

/// The greatest elements along axes where the mask is true.
inline constexpr struct amax_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, M const& mask = {}, A const& axes = {}, K const& keep = {}) const {
    return detail::with(x, mask, true, [&](auto const& v) { return varve::amax(v, axes, keep); });
  }
} amax{};
/// The smallest elements along axes where the mask is true.
inline constexpr struct amin_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, M const& mask = {}, A const& axes = {}, K const& keep = {}) const {
    return detail::with(x, mask, false, [&](auto const& v) { return varve::amin(v, axes, keep); });
  }
} amin{};
/// The index of the smallest element where the mask is true, over all elements or along one axis.
inline constexpr struct argmin_t {
  template <value X, class M = none_t, class... A>
  constexpr auto operator()(X const& x, M const& mask = {}, A const&... at) const {
    return detail::with(x, mask, false, [&](auto const& v) { return varve::argmin(v, at...); });
  }
} argmin{};
/// The index of the greatest element where the mask is true, over all elements or along one axis.
inline constexpr struct argmax_t {
  template <value X, class M = none_t, class... A>
  constexpr auto operator()(X const& x, M const& mask = {}, A const&... at) const {
    return detail::with(x, mask, true, [&](auto const& v) { return varve::argmax(v, at...); });
  }
} argmax{};
/// The sum of the elements where the mask is true.
inline constexpr struct sum_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, M const& mask = {}, A const& axes = {}, K const& keep = {}) const {
    if constexpr (is_none<M>) return varve::sum(x, axes, keep);
    else return varve::sum(where(mask, x, new_zeros(x, ints<>{})), axes, keep);
  }
} sum{};
/// The logarithm of the sum of exponentials of the elements where the mask is true.
inline constexpr struct logsumexp_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, M const& mask = {}, A const& axes = {}, K const& keep = {}) const {
    auto const v = varve::detail::as_floating(x);
    return detail::with(v, mask, true, [&](auto const& u) { return varve::logsumexp(u, axes, keep); });
  }
} logsumexp{};
/// `softmax` along an axis of the elements where the mask is true; 0 elsewhere.
inline constexpr struct softmax_t {
  template <value X, class A, class M = none_t>
  constexpr auto operator()(X const& x, A const& axis, M const& mask = {}) const {
    return detail::with(x, mask, true, [&](auto const& v) { return varve::softmax(v, axis); });
  }
} softmax{};
/// `softmax` of -x along an axis of the elements where the mask is true; 0 elsewhere.
inline constexpr struct softmin_t {
  template <value X, class A, class M = none_t>
  constexpr auto operator()(X const& x, A const& axis, M const& mask = {}) const {
    return softmax(neg(x), axis, mask);
  }
} softmin{};
/// `log_softmax` along an axis of the elements where the mask is true; minus infinity elsewhere.
inline constexpr struct log_softmax_t {
  template <value X, class A, class M = none_t>
  constexpr auto operator()(X const& x, A const& axis, M const& mask = {}) const {
    return detail::with(x, mask, true, [&](auto const& v) { return varve::log_softmax(v, axis); });
  }
} log_softmax{};
/// log(e^x + e^y), where x and y count only where their masks are true.
inline constexpr struct logaddexp_t {
  template <value X, value Y, class M = none_t, class N = none_t>
  constexpr auto operator()(X const& x, Y const& y, M const& x_mask = {}, N const& y_mask = {}) const {
    return detail::with(x, x_mask, true, [&](auto const& u) {
      return detail::with(y, y_mask, true, [&](auto const& v) { return varve::logaddexp(u, v); });
    });
  }
} logaddexp{};

namespace detail {
/// Returns the number of elements along axes where the mask is true, as floating numbers.
template <value X, class M, class A, class K>
constexpr auto counted_where(X const& x, M const& mask, A const& axes, K const& keep) {
  auto const all = ones_like(varve::detach(x));
  if constexpr (is_none<M>) return varve::sum(all, axes, keep);
  else return varve::sum(where(mask, all, new_zeros(all, ints<>{})), axes, keep);
}
} // namespace detail
/// The mean of the elements where the mask is true; NaN if there are none.
inline constexpr struct mean_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, M const& mask = {}, A const& axes = {}, K const& keep = {}) const {
    auto const v = varve::detail::as_floating(x);
    return div(masked::sum(v, mask, axes, keep), detail::counted_where(v, mask, axes, keep));
  }
} mean{};
/// The variance of the elements where the mask is true: the sum of squared distances from the mean, divided by the
/// count minus `correction`.
inline constexpr struct var_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, M const& mask = {}, A const& axes = {}, double correction = 1,
                            K const& keep = {}) const {
    auto const v = varve::detail::as_floating(x);
    auto const d = square(sub(v, masked::mean(v, mask, axes, keepdim)));
    auto const n = sub(detail::counted_where(v, mask, axes, keep), correction);
    return div(masked::sum(d, mask, axes, keep), maximum(n, 0.0));
  }
} var{};
/// The standard deviation of the elements where the mask is true: the square root of `var`.
inline constexpr struct std_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, M const& mask = {}, A const& axes = {}, double correction = 1,
                            K const& keep = {}) const {
    return sqrt(masked::var(x, mask, axes, correction, keep));
  }
} std_dev{};
/// The p-norm (`vector_norm`) of the elements where the mask is true. Integers are refused.
inline constexpr struct norm_t {
  template <value X, class A = ints<>, class K = ints<0>, class M = none_t>
  constexpr auto operator()(X const& x, double p = 2, M const& mask = {}, A const& axes = {},
                            K const& keep = {}) const {
    detail::needs_floating<vector_norm_t>(x);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if constexpr (is_none<M>) return vector_norm(x, p, axes, keep);
    else return vector_norm(where(mask, x, p == -infinity ? infinity : 0.0), p, axes, keep);
  }
} norm{};

} // namespace varve::masked
