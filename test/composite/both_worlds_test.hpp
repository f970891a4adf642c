// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// A composite on static values and on tensors, and the arguments of both.
#include "../sample/value.hpp"

#include <varve/composite/all.hpp>
#include <varve/masked.hpp>
#include <varve/nn.hpp>
#include <varve/transform/grad.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <varve_test.hpp>

namespace both_worlds_test {
using namespace sample;
namespace vv = varve;
template <vv::value X>
tensor as_tensor(X const& x) {
  if constexpr (std::is_same_v<X, tensor>) return x;
  else if constexpr (vv::number<X>) return from({static_cast<double>(x)}, dims{}, vv::dtype_of_type<X>());
  else return tensor::from_data(x.data, vv::to_dims(vv::shape_of(x)));
}
inline void same(tensor const& a, tensor const& b) { CHECK(difference(a, b, 1e-12) == ""); }
template <class F, class... X>
void agree(char const* name, F const& f, X const&... x) {
  INFO(name);
  auto const y = f(x...);
  same(as_tensor(y), f(as_tensor(x)...));
}
template <class F, class... X>
void parts_agree(char const* name, F const& f, X const&... x) {
  INFO(name);
  auto const mine = f(as_tensor(x)...);
  std::size_t k = 0;
  std::apply([&](auto const&... y) { (same(as_tensor(y), tensor(mine[k++])), ...); }, f(x...));
  CHECK(k == mine.size());
}
inline constexpr vv::array<double, 2, 4> x{{-2, -0.25, 0.5, 3, 4, -5, 0.125, 7}};
inline constexpr vv::array<double, 2, 4> y{{0.5, 2, 0.75, 1, 0.25, 3, 0.5, 0.125}};
inline constexpr vv::array<double, 4> v{{1, -2, 3, 0.5}};
inline constexpr vv::array<double, 2, 3, 3> m{{1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, -7, -8, -10}};
inline constexpr vv::array<std::int64_t, 2> i{{1, 0}};
} // namespace both_worlds_test

#define OF_ONE(...) #__VA_ARGS__, [](auto const& a) { return __VA_ARGS__; }
#define OF_TWO(...) #__VA_ARGS__, [](auto const& a, auto const& b) { return __VA_ARGS__; }
