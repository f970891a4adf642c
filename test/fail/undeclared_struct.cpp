// SPDX-License-Identifier: BSL-1.0
// expect: no value and no tree of values; make it a struct
#include <varve/varve.hpp>
namespace vv = varve;

struct parameters {
  double w, b;
  constexpr parameters(double x, double y) : w(x), b(y) {}
};
struct plain {
  double w, b;
};
#ifdef FAIL
constexpr auto wrong = vv::grad([](auto const& p) { return p.w * p.b; })(parameters{2, 3});
#endif
