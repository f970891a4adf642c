// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/add.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/where.hpp>
#include <varve/rule/one_pass.hpp>

namespace varve {

/// The greater of x and 0; NaN stays NaN. The derivative at 0 is 0, as in PyTorch. bool is refused.
template <>
struct rules<relu_t> : detail::no_bool<relu_t, 1> {
  static constexpr operator_text cpp{"kernel::maximum($0, $T(0))"};
  static constexpr operator_class planned_as = operator_class::cheap;
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Relu";
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::maximum(x, decltype(x)(0)); }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& y, value auto const&) {
    return where(gt(y, 0), d, 0);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& y, value auto const&) {
    return detail::at_once<gt_t, where_t>([](auto const& c, auto const& r) { return where(gt(r, 0), c, 0); }, g, y);
  }
};

} // namespace varve
