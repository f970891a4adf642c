// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/expm1.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/where.hpp>

#include <limits>

namespace varve {

namespace detail {
/// Returns x times `logarithm(y)`, whose domain starts at `least`. Where x is 0 it is 0, but its derivative with
/// respect to x is still the logarithm, if that is finite.
template <value X, value Y, class F>
constexpr auto times_logarithm(X const& x, Y const& y, double least, F const& logarithm) {
  auto const zero = eq(x, 0);
  auto const finite = mul(gt(y, least), lt(y, std::numeric_limits<double>::infinity()));
  auto const product = mul(x, logarithm(where(zero, where(finite, y, least + 1), y)));
  return where(ne(y, y), add(x, y), where(zero, add(product, 0), product)); // never -0
}
} // namespace detail

/// x log(y); 0 where x is 0, unless y is NaN (`torch.xlogy`).
inline constexpr struct xlogy_t : composite_operator<xlogy_t> {
  static constexpr auto op_name = "xlogy";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return detail::times_logarithm(x, y, 0, log);
  }
} xlogy{};

/// x log(1 + y); 0 where x is 0, unless y is NaN (`torch.special.xlog1py`).
inline constexpr struct xlog1py_t : composite_operator<xlog1py_t> {
  static constexpr auto op_name = "xlog1py";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return detail::times_logarithm(x, y, -1, log1p);
  }
} xlog1py{};

} // namespace varve
