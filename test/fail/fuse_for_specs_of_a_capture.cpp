// SPDX-License-Identifier: BSL-1.0
// expect: fuse: the function must capture nothing; pass the values as arguments, or compile
#include <varve/varve.hpp>
namespace vv = varve;

vv::tensor right(vv::tensor const& x, double k) {
  return vv::fuse<vv::spec<float, 3>, vv::spec<float>>([](auto v, auto s) { return v * s; })(x, k);
}
#ifdef FAIL
vv::tensor wrong(vv::tensor const& x, double k) {
  return vv::fuse<vv::spec<float, 3>>([k](auto v) { return v * k; })(x);
}
#endif
