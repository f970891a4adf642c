// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/jet/series.hpp>
#include <varve/op/all.hpp>

/// @file
/// The rules of `jet` for operators. Every operator with a `jvp` rule works without an entry here: the derivative of
/// its result is that rule, applied to series that are one term shorter. This file lists the operators for which there
/// is a cheaper rule.
namespace varve::detail {

/// How the coefficients of a result follow from those of the operands.
///
/// - `constant`: the result has no derivative.
/// - `linear` in all operands together: each coefficient is the operator's `jvp` of the coefficients of the same order.
/// - `bilinear`: a product of series.
/// - `quotient`: a quotient of series.
/// - `by_derivative`: the `jvp` rule on series, called once.
/// - `by_derivative_of_result`: the `jvp` rule may read the result and is called once for each order.
enum class series_rule : unsigned char { constant, linear, bilinear, quotient, by_derivative, by_derivative_of_result };

template <class... Tag>
struct tags {};
using linear_tags = tags<add_t, sub_t, neg_t, sum_t, where_t, gather_t, scatter_add_t, slice_backward_t, clone_t,
                         as_strided_backward_t>;
using bilinear_tags = tags<mul_t, mm_t, convolution_t>;

template <class... Tag>
constexpr bool is_among(tags<Tag...>, op_handle const* op) {
  return ((op == &handle<Tag>) || ...);
}
/// Returns the rule of an operator, from its table or its tag.
constexpr series_rule series_rule_of(op_handle const& op, bool differentiable, bool reads_result) {
  if (!differentiable) return series_rule::constant;
  if (op.kind == op_kind::view || op.kind == op_kind::convert || op.kind == op_kind::join ||
      is_among(linear_tags{}, &op))
    return series_rule::linear;
  if (is_among(bilinear_tags{}, &op)) return series_rule::bilinear;
  if (&op == &handle<div_t>) return series_rule::quotient;
  // what the jvp of an operator of yours reads is not declared
  return reads_result || !op.own ? series_rule::by_derivative_of_result : series_rule::by_derivative;
}
constexpr bool reads_result(saved_values const& s) {
  for (std::uint16_t const of : s.of)
    if ((of & saved_values::result) != 0) return true;
  return false;
}
template <class Tag>
inline constexpr series_rule series_rule_of_tag =
    series_rule_of(handle<Tag>, !constant_to_derivatives<Tag>, reads_result(saved_of<rules<Tag>>()));

} // namespace varve::detail
