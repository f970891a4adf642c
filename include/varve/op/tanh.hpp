// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>

namespace varve {

/// Hyperbolic tangent.
template <>
struct rules<tanh_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::tanh;
  static constexpr operator_text cpp{"kernel::tanh($0)"};
  static constexpr char const* onnx = "Tanh";
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::tanh(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return sub(1, mul(y, y)); }
};

} // namespace varve
