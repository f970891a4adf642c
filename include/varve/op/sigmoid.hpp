// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>
#include <varve/rule/one_pass.hpp>

namespace varve {

/// 1 / (1 + e^-x).
template <>
struct rules<sigmoid_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::sigmoid;
  static constexpr operator_text cpp{"kernel::sigmoid($0)"};
  static constexpr char const* onnx = "Sigmoid";
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::sigmoid(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return mul(y, sub(1, y)); }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& y, value auto const& x) {
    auto const pull = [](auto const& c, auto const& r) { return mul(c, partial(arg<0>, r, r)); };
    return detail::unmatch(detail::at_once<mul_t, sub_t>(pull, g, y), x);
  }
};

} // namespace varve
