// SPDX-License-Identifier: BSL-1.0
// expect: fuse: the function must capture nothing, but for calls on tensors alone; pass the values as arguments, or compile
#include <varve/varve.hpp>
namespace vv = varve;

double right(double x, double k) {
  return vv::fuse([](auto v, auto s) { return v * s; })(x, k);
}
vv::tensor on_tensors(vv::tensor const& x, double k) {
  return vv::fuse([k](auto const& v) { return v * k; })(x);
}
#ifdef FAIL
double wrong(double x, double k) {
  return vv::fuse([k](auto v) { return v * k; })(x);
}
#endif
