// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/handle.hpp>
#include <varve/rule/broadcasting.hpp>
#include <varve/value/strided.hpp>

namespace varve::rule {

/// Family of operators that are linear in their one operand: the tangent of the result is the operator applied to the
/// tangent of the operand. The operator provides `shape`, `compute`, `vjp` and `batch`.
struct linear {
  static constexpr int arity = 1;
  template <class Op, value D, value Y, value X>
  static constexpr auto jvp(arg_t<0>, Op const& op, D const& d, Y const&, X const&) {
    return op(d);
  }
};

/// Family of operators that are linear in each of two operands (`mm`). The operator provides `shape`, `compute`, `vjp`
/// and `batch`.
struct bilinear {
  static constexpr int arity = 2;
  template <class Op, value D, value Y, value A, value B>
  static constexpr auto jvp(arg_t<0>, Op const& op, D const& d, Y const&, A const&, B const& b) {
    return op(d, b);
  }
  template <class Op, value D, value Y, value A, value B>
  static constexpr auto jvp(arg_t<1>, Op const& op, D const& d, Y const&, A const& a, B const&) {
    return op(a, d);
  }
};

/// Family of linear operators that only change where elements are looked up. The operator provides `layout_of(at,
/// layout)`, `vjp` and `batch`. Static values copy elements along the layout, tensors share storage, and traces use its
/// shape.
struct view : linear {
  static constexpr op_kind kind = op_kind::view;
  static constexpr saved_values saved = saved_values::nothing();
};

} // namespace varve::rule

namespace varve::detail {
/// Returns the dtype and shape of a view operator's result; the sizes are those of its layout.
template <class Rules>
constexpr meta view_shape(attributes const& at, meta const* in) {
  return {in[0].type, Rules::layout_of(at, contiguous_layout(in[0].sizes)).sizes, in[0].number};
}
} // namespace varve::detail
