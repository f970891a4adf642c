// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/sum.hpp>

namespace varve {

namespace detail {
/// The axes that `layer_norm` normalizes: the last ones, whose sizes were given.
inline constexpr auto normalized_axes = [](dims const& sizes, dims const& normalized) {
  dims axes;
  bool same = normalized.n > 0 && normalized.n <= sizes.n;
  for (int k = 0; k < normalized.n && same; ++k) {
    same = sizes[sizes.n - normalized.n + k] == normalized[k];
    axes.push_back(sizes.n - normalized.n + k);
  }
  if (!same) refuse::argument_is_invalid("layer_norm", "normalized_shape must be the last sizes of the input");
  return axes;
};
} // namespace detail

/// `layer_norm(x, normalized_shape, weight = none, bias = none, eps = 1e-5)`: x minus its mean, over its standard
/// deviation (that of the population, eps added to the variance), both along the last axes, whose sizes are given; then
/// times weight, plus bias. Integers are refused.
///
/// The variance is taken around a mean that is constant to derivatives, minus the square of the (zero) distance to the
/// mean: the same function with the same derivatives of every order, but the backward part needs no sum that depends on
/// another sum, so that one pass over a row finds both.
inline constexpr struct layer_norm_t : composite_operator<layer_norm_t> {
  static constexpr auto op_name = "layer_norm";
  template <value X, class S, class W = none_t, class B = none_t>
  static constexpr auto body(X const& x, S const& normalized_shape, W const& weight = {}, B const& bias = {},
                             double eps = 1e-5) {
    auto const axes = on_dims(detail::normalized_axes, shape_of(x), detail::as_fact(normalized_shape));
    auto const m = mean(x, axes, keepdim);
    auto const fixed = detach(m);
    auto const variance = sub(mean(square(sub(x, fixed)), axes, keepdim), square(sub(m, fixed)));
    auto const y = mul(sub(x, m), rsqrt(add(variance, eps)));
    auto const scaled = [&] {
      if constexpr (is_none<W>) return y;
      else return mul(y, weight);
    }();
    if constexpr (is_none<B>) return scaled;
    else return add(scaled, bias);
  }
} layer_norm{};

} // namespace varve
