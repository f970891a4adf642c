// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/full_like.hpp>
#include <varve/rule/pointwise.hpp>

namespace varve {

/// `where(condition, x, y)`: x where the condition (bool) is true, y elsewhere. The cotangent of the operand not chosen
/// is exactly 0, not a product with 0.
template <>
struct rules<where_t> : rule::pointwise<3, promotion::arithmetic, 1> {
  static constexpr complex_rule of_complex = complex_rule::by_parts_but_operand_0;
  static constexpr operator_text cpp{"kernel::where($0, $1, $2)"};
  static constexpr operator_class planned_as = operator_class::cheap;
  static constexpr bool integer_lanes = true;
  static constexpr meta shape(attributes const& at, meta const* in, int count) {
    detail::require_condition("where", in[0].type);
    return rule::pointwise<3, promotion::arithmetic, 1>::shape(at, in, count);
  }
  static constexpr saved_values saved{{0, saved_values::operand(0), saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto c, auto x, auto y) { return kernel::where(c, x, y); }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const&, value auto const& d, value auto const& r, value auto const& c,
                            auto const&...) {
    return where(c, detail::match(d, r), 0);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<2>, Op const&, value auto const& d, value auto const& r, value auto const& c,
                            auto const&...) {
    return where(c, 0, detail::match(d, r));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const&, value auto const& r, auto const&...) {
    return detail::constant_zeros(r);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const& g, value auto const&, value auto const& c,
                            value auto const& x, auto const&) {
    return detail::unmatch(where(c, g, 0), x);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<2>, Op const&, value auto const& g, value auto const&, value auto const& c,
                            auto const&, value auto const& y) {
    return detail::unmatch(where(c, 0, g), y);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& c,
                            auto const&...) {
    return detail::unmatch(detail::constant_zeros(g), c);
  }
};

} // namespace varve
