// SPDX-License-Identifier: BSL-1.0
// expect: x \+= y gives a value of another type than x has: of another shape or dtype, or seen through a transform
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

constexpr auto right = [](auto const& x) {
  auto y = x * 0.0;
  y += x * 3.0;
  return vv::sum(y);
};
static_assert(vv::equal(vv::grad(right)(vv::array<double, 2>{1, 2}), vv::array<double, 2>{3, 3}));
#ifdef FAIL
constexpr auto wrong = [](auto const& x) {
  auto y = vv::zeros_like(x);
  y += x * 3.0;
  return vv::sum(y);
};
constexpr auto g = vv::grad(wrong)(vv::array<double, 2>{1, 2});
#endif
