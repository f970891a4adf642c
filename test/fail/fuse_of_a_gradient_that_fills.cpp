// SPDX-License-Identifier: BSL-1.0
// expect: an in-place operator writes a value that is seen through a static transform into one that is not; assign what
#include <varve/fuse/tensors.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

constexpr auto fills = [](auto const& x) {
  auto y = vv::zeros_like(x);
  vv::add_(y, x * 3.0);
  return vv::sum(y);
};
inline auto const right = vv::fuse<vv::spec<double, 2>>(fills);
vv::tensor run(vv::tensor const& x) { return right(x); }
#ifdef FAIL
inline auto const wrong = vv::fuse<vv::spec<double, 2>>(vv::grad(fills));
vv::tensor fail(vv::tensor const& x) { return wrong(x); }
#endif
