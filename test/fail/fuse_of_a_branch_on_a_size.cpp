// SPDX-License-Identifier: BSL-1.0
// expect: what the function does depends on a symbolic size; use one that does not branch on sizes
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto plain = [](auto x) { return vv::sin(x); };
constexpr auto branch = [](auto x) {
  return vv::to_dims(vv::shape_of(x))[0] % 3 == 1 ? vv::sin(x) : vv::cos(vv::exp(x));
};
vv::tensor right(vv::tensor const& x) { return vv::fuse<vv::spec<float, vv::dim<"n">>>(plain)(x); }
#ifdef FAIL
void wrong(vv::tensor const& x) { (void)vv::fuse<vv::spec<float, vv::dim<"n">>>(branch)(x); }
#endif
