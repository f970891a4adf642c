// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>

namespace varve {

/// e to the x.
template <>
struct rules<exp_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::exp;
  static constexpr operator_text cpp{"kernel::exp($0)"};
  static constexpr char const* onnx = "Exp";
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::exp(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return y; }
};

/// Natural logarithm.
template <>
struct rules<log_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::log;
  static constexpr operator_text cpp{"kernel::log($0)"};
  static constexpr char const* onnx = "Log";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::log(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return div(1, x); }
};

} // namespace varve
