// SPDX-License-Identifier: BSL-1.0
// expect: implicit: the function captures a value that a transform sees
#include <varve/implicit.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right = [](auto a) {
  return vv::implicit::root(vv::closure([](auto x, auto v) { return x * x - v; }, a))(1.0);
};
double const slope = vv::grad(right)(2.0);
#ifdef FAIL
constexpr auto wrong = [](auto a) { return vv::implicit::root([a](auto x) { return x * x - a; })(1.0); };
double const none = vv::grad(wrong)(2.0);
#endif
