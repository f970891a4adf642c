// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/compare.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/where.hpp>

namespace varve {

namespace detail {
/// Returns an operand's share of a tangent or cotangent `v`: 0 where the other operand was chosen, half where both are
/// equal. With NaN no comparison is true, and both operands get all of `v`.
constexpr auto share(value auto const& other, value auto const& x, value auto const& y, value auto const& v) {
  return where(eq(x, y), mul(v, 0.5), where(other, 0, v));
}
struct selecting : rule::pointwise<2> {
  static constexpr operator_class planned_as = operator_class::cheap;
  static constexpr bool integer_lanes = true;
  static constexpr saved_values saved{
      {saved_values::operand(0) | saved_values::operand(1), saved_values::operand(0) | saved_values::operand(1)}};
  template <std::size_t I, class Op>
  static constexpr auto jvp(arg_t<I> a, Op const&, value auto const& d, value auto const& r, value auto const& x,
                            value auto const& y) {
    return share(rules<typename Op::tag>::other_chosen(a, x, y), x, y, match(d, r));
  }
  template <std::size_t I, class Op>
  static constexpr auto vjp(arg_t<I> a, Op const&, value auto const& g, value auto const&, value auto const& x,
                            value auto const& y) {
    return unmatch(share(rules<typename Op::tag>::other_chosen(a, x, y), x, y, g), nth<I>(x, y));
  }
};
} // namespace detail

/// The greater element; NaN wins. Equal operands share the derivative evenly, as in PyTorch.
template <>
struct rules<maximum_t> : detail::selecting {
  static constexpr operator_text cpp{"kernel::maximum($0, $1)"};
  static constexpr char const* onnx = "Max";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::maximum(x, y); }
  static constexpr auto other_chosen(arg_t<0>, auto const& x, auto const& y) { return lt(x, y); }
  static constexpr auto other_chosen(arg_t<1>, auto const& x, auto const& y) { return gt(x, y); }
};

/// The smaller element; NaN wins. Equal operands share the derivative evenly, as in PyTorch.
template <>
struct rules<minimum_t> : detail::selecting {
  static constexpr operator_text cpp{"kernel::minimum($0, $1)"};
  static constexpr char const* onnx = "Min";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::minimum(x, y); }
  static constexpr auto other_chosen(arg_t<0>, auto const& x, auto const& y) { return gt(x, y); }
  static constexpr auto other_chosen(arg_t<1>, auto const& x, auto const& y) { return lt(x, y); }
};

} // namespace varve
