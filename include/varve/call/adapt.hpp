// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/row.hpp>
#include <varve/dispatch/integer_range.hpp>
#include <varve/op/to.hpp>

/// @file
/// What rows of several families say of function objects and numbers.
namespace varve::by_name {

/// A function object as a function of tensors.
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
/// `f(number)` of a number that a plain one holds, in its own type.
template <class F>
tensor with_number(tensor const& v, F const& f) {
  if (v.dtype() == dtype::bool_) return f(v.item<bool>());
  return is_floating(v.dtype()) ? f(v.item<double>()) : f(v.item<index_t>());
}
/// A number that is to be an element of x, in its dtype; what is beyond its range is refused.
inline tensor as_element(char const* op, tensor const& x, tensor const& v) {
  if (v.is_number() && !is_complex(v.dtype())) {
    if (is_floating(v.dtype())) detail::require_element(op, v.item<double>(), x.dtype());
    else if (v.dtype() != dtype::bool_) detail::require_element(op, v.item<index_t>(), x.dtype());
  }
  return to(v, x.dtype());
}

} // namespace varve::by_name
