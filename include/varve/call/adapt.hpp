// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/row.hpp>

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

} // namespace varve::by_name
