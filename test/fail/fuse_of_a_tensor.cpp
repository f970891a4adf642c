// SPDX-License-Identifier: BSL-1.0
// expect: arguments are numbers, vv::array, and tensor_ref with extents known to the compiler; for tensors declare specs
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto f = vv::fuse([](auto x) { return x + x; });
vv::tensor right(vv::tensor const& x) {
  return vv::fuse<vv::spec<float, 3>>([](auto v) { return v + v; })(x);
}
#ifdef FAIL
auto wrong(vv::tensor const& x) { return f(x); }
#endif
