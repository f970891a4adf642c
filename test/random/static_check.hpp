// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What a unit written by `test/fuzz/static_unit.cpp` compares: one function on static arrays, fused, and on tensors.
#include "../sample/value.hpp"
#include "custom.hpp"

#include <cmath>
#include <cstdio>

namespace random_programs {
inline int differences = 0, comparisons = 0;

template <vv::index_t... D>
vv::tensor as_tensor(vv::array<double, D...> const& a) {
  return vv::tensor::from_data(a.data, {D...});
}
template <class Y>
inline constexpr int spec_of = 0;
template <vv::index_t... D>
inline constexpr auto spec_of<vv::array<double, D...>> = vv::spec<double, D...>;
/// A static result beside that of tensors.
template <class Y>
void compare(unsigned long long seed, char const* how, Y const& found, vv::tensor const& right) {
  ++comparisons;
  vv::tensor y;
  if constexpr (std::is_same_v<Y, vv::tensor>) y = found;
  else if constexpr (vv::is_array<Y>) y = vv::tensor::from_data(found.data, vv::to_dims(vv::shape_of(found)));
  else y = vv::full({}, found, vv::dtype_of_type<Y>());
  // A number computed of arrays counts as a plain one: where a mask picks of such, the result is a float.
  bool same = y.sizes() == right.sizes() && (y.dtype() == right.dtype() || y.dtype() == vv::dtype::float32);
  for (vv::index_t k = 0; same && k < y.numel(); ++k) {
    double const a = sample::element(y, k), b = sample::element(right, k);
    same = a == b || (!std::isfinite(a) && !std::isfinite(b)) || std::fabs(a - b) <= 1e-6 * (1 + std::fabs(b));
  }
  if (same) return;
  ++differences;
  std::printf("seed %llu: %s differs from tensors\n", seed, how);
}
/// A function of arrays in every way that shows it to the compiler.
template <class F, class... X>
void check(unsigned long long seed, char const* what, F const& f, X const&... x) {
  vv::tensor const right = f(as_tensor(x)...);
  char text[80];
  auto const how = [&](char const* way) { return std::snprintf(text, sizeof text, "%s, %s", what, way), text; };
  compare(seed, how("static"), f(x...), right);
  compare(seed, how("fused"), vv::fuse(f)(x...), right);
  compare(seed, how("fused on tensors"), vv::fuse<spec_of<X>...>(f)(as_tensor(x)...), right);
}
} // namespace random_programs
