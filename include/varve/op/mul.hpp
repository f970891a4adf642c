// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/add.hpp>

namespace varve {

/// x * y.
template <>
struct rules<mul_t> : rule::pointwise<2> {
  static constexpr complex_rule of_complex = complex_rule::mul;
  static constexpr operator_text cpp{"kernel::mul($0, $1)", "$0 * $1"};
  static constexpr operator_class planned_as = operator_class::mul;
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Mul";
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    using R = decltype(x * y);
    if constexpr (kernel::integral<kernel::element_t<R>>) return kernel::mul<R>(x, y);
    else return x * y;
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&, auto const& y) { return y; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const& x, auto const&) { return x; }
};

/// x / y, always floating (torch.true_divide).
template <>
struct rules<div_t> : rule::pointwise<2, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::div;
  static constexpr operator_text cpp{nullptr, "$0 / $1"};
  static constexpr operator_class planned_as = operator_class::div;
  static constexpr char const* onnx = "Div";
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::operand(0) | saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return x / y; }
  /// Uses a double reciprocal for plain numbers: numbers follow C++ rules, so that 1 / 3 would be a float.
  static constexpr auto partial(arg_t<0>, auto const&, auto const&, auto const& y) {
    if constexpr (number<std::remove_cvref_t<decltype(y)>>) return div(1.0, y);
    else return div(1, y);
  }
  /// Uses the reciprocal that the derivative of x also needs, so that both share one division. Recorded calls recompute
  /// the quotient instead of keeping it, because the result may be written into (PyTorch also saves self and other).
  template <class Q, class X, class Z>
  static constexpr auto partial(arg_t<1>, Q const& kept, X const& x, Z const& y) {
    auto const q = [&] {
      if constexpr (dynamic_value<Q>) return div(x, y);
      else return kept;
    }();
    if constexpr (number<Z>) return neg(div(q, y));
    else
      return choose(
          same_fact(type_fact(y), type_fact(q)), [&](auto const& d) { return neg(mul(q, div(1, d))); },
          [&](auto const& d) { return neg(div(q, d)); }, y);
  }

  using family = rule::pointwise<2, promotion::floating>;
  using family::jvp, family::vjp;
  /// Divides by multiplying with a reciprocal, which all divisions by the same value share. Where the reciprocal would
  /// be less precise than the result, it divides directly.
  template <class Op, value D, value Y, value X, value Z>
  static constexpr auto jvp(arg_t<0> a, Op const& op, D const& d, Y const& q, X const& x, Z const& y) {
    if constexpr (number<Z>) return family::jvp(a, op, d, q, x, y);
    else
      return choose(
          same_fact(type_fact(y), type_fact(q)), [&](auto const& t) { return family::jvp(a, op, t, q, x, y); },
          [&](auto const& t) { return detail::match(div(t, y), q); }, d);
  }
  template <class Op, value G, value Y, value X, value Z>
  static constexpr auto vjp(arg_t<0> a, Op const& op, G const& g, Y const& q, X const& x, Z const& y) {
    if constexpr (number<Z>) return family::vjp(a, op, g, q, x, y);
    else
      return choose(
          same_fact(type_fact(y), type_fact(g)), [&](auto const& c) { return family::vjp(a, op, c, q, x, y); },
          [&](auto const& c) { return detail::unmatch(div(c, y), x); }, g);
  }
};

} // namespace varve
