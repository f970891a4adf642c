// SPDX-License-Identifier: BSL-1.0
// expect: fuse: the function must capture nothing to write its results into
#include <varve/varve.hpp>
namespace vv = varve;

void right(double& y, double x, double k) {
  vv::fuse([](auto v, auto s) { return v * s; }).into(y)(x, k);
}
#ifdef FAIL
void wrong(double& y, vv::tensor const& x, double k) {
  vv::fuse([k](auto v) { return v * k; }).into(y)(x);
}
#endif
