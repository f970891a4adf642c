// SPDX-License-Identifier: BSL-1.0
// expect: an in-place operator was called on a static value, or on one seen through a static transform; assign what the
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

constexpr auto right = [](auto const& x) { return vv::sum(x * 1.0 * 3.0); };
static_assert(vv::equal(vv::grad(right)(vv::array<double, 2>{1, 2}), vv::array<double, 2>{3, 3}));
#ifdef FAIL
constexpr auto wrong = [](auto const& x) {
  auto y = x * 1.0;
  vv::mul_(y, 3.0);
  return vv::sum(y);
};
constexpr auto g = vv::grad(wrong)(vv::array<double, 2>{1, 2});
#endif
