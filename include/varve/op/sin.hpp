// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>

namespace varve {

/// Sine of an angle in radians.
template <>
struct rules<sin_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::sin;
  static constexpr operator_text cpp{"kernel::sin($0)"};
  static constexpr char const* onnx = "Sin";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::sin(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return cos(x); }
};

/// Cosine of an angle in radians.
template <>
struct rules<cos_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::cos;
  static constexpr operator_text cpp{"kernel::cos($0)"};
  static constexpr char const* onnx = "Cos";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::cos(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return neg(sin(x)); }
};

} // namespace varve
