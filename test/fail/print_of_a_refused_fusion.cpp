// SPDX-License-Identifier: BSL-1.0
// The refusal is all that is said: what uses the result adds nothing.
// expect: varve: fuse: the function must capture nothing, but for calls on tensors alone
#include <varve/varve.hpp>

#include <iostream>
namespace vv = varve;

void right(double x, double k) {
  std::cout << vv::fuse([](auto v, auto s) { return v * s; })(x, k);
}
#ifdef FAIL
void wrong(double x, double k) {
  std::cout << vv::fuse([k](auto v) { return v * k; })(x);
}
#endif
