// SPDX-License-Identifier: BSL-1.0
// expect: an in-place operator was called on a static value, or on one seen through a static transform; assign what the
#include <varve/op/all.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr auto right = [](auto const& x) { return vv::clamp(x * 1.0, 0.0, 1.0); };
static_assert(vv::equal(vv::vmap(right)(vv::array<double, 2>{1, 2}), vv::array<double, 2>{1, 1}));
#ifdef FAIL
constexpr auto wrong = [](auto const& x) {
  auto y = x * 1.0;
  vv::clamp_(y, 0.0, 1.0);
  return y;
};
constexpr auto y = vv::vmap(wrong)(vv::array<double, 2>{1, 2});
#endif
