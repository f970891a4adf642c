// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/exp.hpp>

namespace varve {

/// The error function: 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x. The standard normal cumulative
/// distribution function is `0.5 * (1 + erf(x / sqrt(2)))`.
template <>
struct rules<erf_t> : rule::pointwise<1, promotion::floating> {
  static constexpr operator_text cpp{"kernel::erf($0)"};
  static constexpr char const* onnx = "Erf";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::erf(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) {
    return mul(exp(neg(mul(x, x))), 0x1.20dd750429b6dp0);
  }
};

} // namespace varve
