// SPDX-License-Identifier: BSL-1.0
// expect: an in-place operator was called on a static value, or on one seen through a static transform; assign what the
#include <varve/fuse/tensors.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr auto writes = [](auto const& x) {
  auto y = x * 1.0;
  vv::mul_(y, 3.0);
  return vv::sum(y);
};
inline auto const right = vv::fuse<vv::spec<double, 2>>(writes);
vv::tensor run(vv::tensor const& x) { return right(x); }
#ifdef FAIL
inline auto const wrong = vv::fuse<vv::spec<double, 2>>(vv::grad(writes));
vv::tensor fail(vv::tensor const& x) { return wrong(x); }
#endif
