// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/row.hpp>
#include <varve/dispatch/integer_range.hpp>
#include <varve/op/to.hpp>

/// @file
/// Helpers that adapt function objects and numbers to rows of several families.
namespace varve::by_name {

/// Calls a function object on tensors.
template <class Op>
tensor of_one(tensor const& x) {
  return Op{}(x);
}
template <class Op>
tensor of_two(tensor const& x, tensor const& y) {
  return Op{}(x, y);
}
template <class Op>
tensor of_two_turned(tensor const& x, tensor const& y) {
  return Op{}(y, x);
}
template <class Op>
tensor of_three(tensor const& x, tensor const& y, tensor const& z) {
  return Op{}(x, y, z);
}
/// Calls `f(number)` with the number in a plain-number tensor, as bool, integer or floating type.
template <class F>
tensor with_number(tensor const& v, F const& f) {
  if (v.dtype() == dtype::bool_) return f(v.item<bool>());
  return is_floating(v.dtype()) ? f(v.item<double>()) : f(v.item<index_t>());
}
/// Returns a number in the dtype of x, to become an element of it. Refuses numbers outside the range of that dtype.
inline tensor as_element(char const* op, tensor const& x, tensor const& v) {
  if (v.is_number() && !is_complex(v.dtype())) {
    if (is_floating(v.dtype())) detail::require_element(op, v.item<double>(), x.dtype());
    else if (v.dtype() != dtype::bool_) detail::require_element(op, v.item<index_t>(), x.dtype());
  }
  return to(v, x.dtype());
}

} // namespace varve::by_name
