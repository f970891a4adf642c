// SPDX-License-Identifier: BSL-1.0
// expect: a plain number cannot take it; begin with decltype.x..0., or auto s = 0 . x
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right = [](auto x) {
  auto s = 0 * x;
  for (int k = 0; k < 3; ++k) s += x;
  return s;
};
static_assert(vv::grad(right)(1.0) == 3);
#ifdef FAIL
constexpr auto wrong = [](auto x) {
  auto s = 0.0;
  for (int k = 0; k < 3; ++k) s += x;
  return s;
};
constexpr auto d = vv::grad(wrong)(1.0);
#endif
