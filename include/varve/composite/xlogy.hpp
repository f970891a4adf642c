// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/expm1.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/where.hpp>

namespace varve {

/// x log(y), which is 0 where x is 0, unless y is NaN (`torch.xlogy`).
inline constexpr struct xlogy_t : composite_operator<xlogy_t> {
  static constexpr auto op_name = "xlogy";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    auto const zero = eq(x, 0);
    return where(ne(y, y), add(x, y), where(zero, 0, mul(x, log(where(zero, 1, y)))));
  }
} xlogy{};

/// x log(1 + y), which is 0 where x is 0, unless y is NaN (`torch.special.xlog1py`).
inline constexpr struct xlog1py_t : composite_operator<xlog1py_t> {
  static constexpr auto op_name = "xlog1py";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    auto const zero = eq(x, 0);
    return where(ne(y, y), add(x, y), where(zero, 0, mul(x, log1p(where(zero, 0, y)))));
  }
} xlog1py{};

} // namespace varve
