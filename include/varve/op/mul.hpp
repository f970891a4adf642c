// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/add.hpp>

namespace varve {

/// x * y.
template <>
struct rules<mul_t> : rule::pointwise<2> {
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::operand(0)}};
  static constexpr auto kernel(auto x, auto y) { return x * y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&, auto const& y) { return y; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const& x, auto const&) { return x; }
};

/// x / y, always floating (torch.true_divide).
template <>
struct rules<div_t> : rule::pointwise<2, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::result | saved_values::operand(1)}};
  static constexpr auto kernel(auto x, auto y) { return x / y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&, auto const& y) { return div(1, y); }
  static constexpr auto partial(arg_t<1>, auto const& q, auto const&, auto const& y) { return neg(div(q, y)); }
};

} // namespace varve
