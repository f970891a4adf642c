// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "value.hpp"

#include <varve/varve.hpp>

#include <algorithm>

/// @file
/// For tests of loops: their arguments in both worlds.
namespace sample {
/// An array as a tensor.
template <varve::index_t... D>
tensor boxed(varve::array<double, D...> const& a) {
  return tensor::from_data(a.data, {D...});
}
inline tensor boxed(double a) { return varve::full({}, a, varve::dtype::float64); }
/// A tensor as an array of the same type as `a`.
template <class A>
A unboxed(tensor const& t, A a) {
  tensor const c = varve::contiguous(t);
  std::copy(c.data<double>(), c.data<double>() + A::count, a.data);
  return a;
}
inline bool agree(tensor const& a, tensor const& b) { return difference(a, b, 1e-9).empty(); }
inline bool same(tensor const& a, tensor const& b) { return difference(a, b, 1e-12).empty(); }
/// Row k.
inline tensor at(tensor const& t, int k) { return varve::select(t, 0, k); }
} // namespace sample
