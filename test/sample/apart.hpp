// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "value.hpp"

#include <varve/varve.hpp>

#include <cmath>

/// @file
/// What tests of fused programs fill values with, and compare them by.
namespace sample {

/// An array of half waves.
template <class A>
A filled(double phase) {
  A a{};
  for (varve::index_t i = 0; i < A::size(); ++i)
    a.data[i] = static_cast<typename A::value_type>(0.5 * std::sin(phase + 1.3 * static_cast<double>(i)));
  return a;
}
/// Greatest difference, relative to 1 + |b|; 1e9 where dtype, sizes or NaNs differ.
inline double apart(varve::tensor const& a, varve::tensor const& b) {
  if (!(varve::meta_of(a) == varve::meta_of(b))) return 1e9;
  double worst = 0;
  for (varve::index_t k = 0; k < a.numel(); ++k) {
    double const x = element(a, k), y = element(b, k), d = std::fabs(x - y) / (1 + std::fabs(y));
    if (!(d <= worst) && !(x != x && y != y)) worst = d >= 0 ? d : x == y ? worst : 1e9;
  }
  return worst;
}
/// A mode that counts calls.
struct noting : varve::dispatch_mode<noting> {
  int calls = 0;
  auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};

} // namespace sample
