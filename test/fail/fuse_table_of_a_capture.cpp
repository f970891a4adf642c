// SPDX-License-Identifier: BSL-1.0
// expect: fuse: the function must capture nothing, but for calls on tensors alone; pass the values as arguments, or compile
#include <varve/varve.hpp>
namespace vv = varve;

double right(double x, double k) {
  return vv::fuse([](auto v, auto s) { return v * s; }, vv::table_driven)(x, k);
}
#ifdef FAIL
double wrong(double x, double k) {
  return vv::fuse([k](auto v) { return v * k; }, vv::table_driven)(x);
}
#endif
