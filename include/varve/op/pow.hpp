// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/compare.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/where.hpp>

namespace varve {

/// x to the power y. Derivatives are as in PyTorch: the one with respect to x is 0 where y is 0; the one with respect
/// to y is 0 where x is 0 and y is not negative.
template <>
struct rules<pow_t> : rule::pointwise<2> {
  static constexpr complex_rule of_complex = complex_rule::pow;
  static constexpr operator_text cpp{"kernel::pow($0, $1)"};
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Pow";
  static constexpr bool is_slow = true;
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::operand(1),
                                       saved_values::result | saved_values::operand(0) | saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::pow(x, y); }
  // The branch not selected is kept finite too: higher derivatives multiply it by 0.
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x, auto const& y) {
    return where(eq(y, 0), 0, mul(y, pow(x, where(eq(y, 0), 1, sub(y, 1)))));
  }
  static constexpr auto partial(arg_t<1>, auto const& r, auto const& x, auto const& y) {
    return mul(r, log(where(eq(x, 0), where(ge(y, 0), 1, x), x)));
  }
};

} // namespace varve
