// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>

namespace varve {

/// Square root; NaN below 0.
template <>
struct rules<sqrt_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::sqrt;
  static constexpr operator_text cpp{"kernel::sqrt($0)"};
  static constexpr char const* onnx = "Sqrt";
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::sqrt(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return div(0.5, y); }
};

} // namespace varve
