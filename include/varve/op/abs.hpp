// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>

namespace varve {

/// Magnitude. The derivative at 0 is 0. bool is refused.
template <>
struct rules<abs_t> : detail::no_bool<abs_t, 1> {
  static constexpr complex_rule of_complex = complex_rule::abs;
  static constexpr operator_text cpp{"kernel::abs($0)"};
  static constexpr operator_class planned_as = operator_class::abs;
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Abs";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::abs(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return sign(x); }
};

/// -1, 0 or 1. Its derivative is zero.
template <>
struct rules<sign_t> : rule::pointwise<1> {
  static constexpr operator_text cpp{"kernel::sign($0)"};
  static constexpr operator_class planned_as = operator_class::cheap;
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Sign";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::sign(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return mul(sign(x), 0); }
};

} // namespace varve
