// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>

namespace varve {

/// e^x - 1 without cancellation near 0.
template <>
struct rules<expm1_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::expm1;
  static constexpr operator_text cpp{"kernel::expm1($0)"};
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::expm1(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return add(y, 1); }
};

/// log(1 + x) without cancellation near 0; NaN below -1.
template <>
struct rules<log1p_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::log1p;
  static constexpr operator_text cpp{"kernel::log1p($0)"};
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::log1p(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return div(1, add(x, 1)); }
};

} // namespace varve
